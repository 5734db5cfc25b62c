//go:build race

package hot

const raceDetector = true
