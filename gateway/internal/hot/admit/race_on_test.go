//go:build race

package admit

const raceDetector = true
