package main

import (
	"errors"
	"net/http"
)

// Exit codes. Scripts may rely on them.
const (
	exitOK = 0
	// exitFailed: the server could not be reached or could not do it.
	exitFailed = 1
	// exitUsage: the command line, or what it asks for, makes no sense. Nothing was changed.
	exitUsage = 2
	// exitDiffers: `rules diff` found differences.
	exitDiffers = 3
	// exitDeclined: a person answered no. Nothing was changed.
	exitDeclined = 4
	// exitConflict: somebody else has changed it in the meantime. Nothing was changed.
	exitConflict = 5
	// exitDenied: the token is missing, unknown, or of a viewer.
	exitDenied = 6
	// exitNotFound: there is no such thing.
	exitNotFound = 7
)

var (
	errDiffers  = errors.New("the rules differ from the file")
	errDeclined = errors.New("nothing was changed")
)

// usageError is a mistake on the command line.
type usageError struct{ error }

func exitCode(err error) int {
	var (
		p *problem
		u usageError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errDiffers):
		return exitDiffers
	case errors.Is(err, errDeclined):
		return exitDeclined
	case errors.As(err, &u):
		return exitUsage
	case errors.As(err, &p):
		switch p.Status {
		case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusRequestEntityTooLarge:
			return exitUsage
		case http.StatusUnauthorized, http.StatusForbidden:
			return exitDenied
		case http.StatusNotFound:
			return exitNotFound
		case http.StatusConflict:
			return exitConflict
		}
	}
	return exitFailed
}

const exitHelp = `Exit codes: 0 done; 1 failed; 2 wrong usage or refused input; 3 "rules diff" found differences; 4 answered no;
5 changed by somebody else in the meantime; 6 token missing or not allowed; 7 no such thing.`
