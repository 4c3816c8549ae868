package gateway

import "net/http"

// Middleware gives next the Identity that the gateway set, in the request's context, and takes the trusted headers and
// any Authorization away so that nothing behind it is tempted to read them. A request without a valid identity is
// answered 401: it did not come through the gateway.
func Middleware(headers Headers, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := headers.Parse(r.Header)
		if err != nil {
			WriteError(w, &Error{
				Status: http.StatusUnauthorized, Code: CodeUnauthenticated,
				Message: "this backend is reached through its gateway, with a key: send \"Authorization: Bearer <key>\" to the gateway's address",
				Cause:   err,
			})
			return
		}
		for name := range r.Header {
			if headers.Owns(name) {
				delete(r.Header, name)
			}
		}
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r.WithContext(WithIdentity(r.Context(), id)))
	})
}
