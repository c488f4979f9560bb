package email

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// The ports of a mail server whose URL has none.
const (
	portRelay      = 25  // smtp:// without credentials
	portSubmission = 587 // smtp:// with credentials
	portTLS        = 465 // smtps://
)

// Server is the mail server that mails are submitted to.
type Server struct {
	Host string
	Port int
	// ImplicitTLS begins with TLS (smtps://). Without it STARTTLS is used where the server offers it,
	// and required where there are credentials.
	ImplicitTLS bool
	// User and Password are both empty for a server that requires neither.
	User     string
	Password string
}

// Address is the host:port to dial. It holds no secret.
func (s Server) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// ParseServer parses smtp://[user:password@]host[:port] or smtps://... with the user and password
// percent-encoded. Errors never quote the URL, which may hold a password.
func ParseServer(rawURL string) (Server, error) {
	parsed, err := url.Parse(rawURL)
	if err != nil || (parsed.Scheme != "smtp" && parsed.Scheme != "smtps") {
		return Server{}, errors.New("must look like smtp://user:password@host:587 or smtps://…:465")
	}
	if parsed.Opaque != "" || strings.Trim(parsed.Path, "/") != "" ||
		parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "" {
		return Server{}, errors.New(
			"must end after host and port; encode / ? # in the password as %2F %3F %23")
	}
	server := Server{Host: parsed.Hostname(), ImplicitTLS: parsed.Scheme == "smtps"}
	if err := server.readUser(parsed.User); err != nil {
		return Server{}, err
	}
	// Characters that neither a host name nor an IP address holds.
	notHost := func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/\@<>"`, r)
	}
	if server.Host == "" || strings.ContainsFunc(server.Host, notHost) {
		return Server{}, errors.New("must name the mail server's host")
	}
	if err := server.readPort(parsed.Port()); err != nil {
		return Server{}, err
	}
	return server, nil
}

func (s *Server) readUser(user *url.Userinfo) error {
	if user == nil {
		return nil
	}
	password, given := user.Password()
	if user.Username() == "" || !given || password == "" {
		return errors.New("must hold a user and a password, or neither")
	}
	// NUL separates the parts of AUTH PLAIN, line ends separate the commands of SMTP.
	if strings.ContainsAny(user.Username()+password, "\x00\r\n") {
		return errors.New("must not hold line breaks or NUL in its user or password")
	}
	s.User, s.Password = user.Username(), password
	return nil
}

func (s *Server) readPort(text string) error {
	switch {
	case text != "":
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			return errors.New("must name a port from 1 to 65535")
		}
		s.Port = port
	case s.ImplicitTLS:
		s.Port = portTLS
	case s.User != "":
		s.Port = portSubmission
	default:
		s.Port = portRelay
	}
	return nil
}
