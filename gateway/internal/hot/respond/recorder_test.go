package respond

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// listener keeps every status it is told.
type listener struct {
	httptest.ResponseRecorder
	told []int
}

func (l *listener) WriteHeader(status int) { l.told = append(l.told, status) }

func TestRecorderPassesInformationOnButNotContinue(t *testing.T) {
	below := new(listener)
	w := &Recorder{ResponseWriter: below}
	for _, status := range []int{http.StatusContinue, http.StatusEarlyHints, http.StatusContinue, http.StatusCreated} {
		w.WriteHeader(status)
	}
	if !slices.Equal(below.told, []int{http.StatusEarlyHints, http.StatusCreated}) || w.Status != http.StatusCreated {
		t.Errorf("%v are passed on, %d is noted", below.told, w.Status)
	}
}
