package api

import (
	"net/http"
	"time"
)

// SessionBody carries the token that the console was given.
type SessionBody struct {
	Token string `json:"token"`
}

// sessionLength is how long a browser keeps a session.
const sessionLength = 12 * time.Hour

// signIn puts the token into a cookie that scripts cannot read and foreign pages cannot send.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	var body SessionBody
	err := read(r, &body)
	if err == nil {
		trial := r.Clone(r.Context())
		trial.Header.Set("Authorization", "Bearer "+body.Token)
		if s.Access.identify(trial).Role == Nobody {
			err = problem(http.StatusUnauthorized, "token-unknown", "This token is not known", "")
		}
	}
	if err != nil {
		p, _ := asProblem(err)
		writeProblem(w, p)
		return
	}
	http.SetCookie(w, s.cookie(r, body.Token, int(sessionLength/time.Second)))
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, s.cookie(r, "", -1))
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{Name: tokenCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
}
