package pgserver

// Options says where a server keeps its data, and how.
type Options struct {
	// Dir is the folder of the server; it is created as needed. Where the user that the server must
	// run as cannot enter it, the data goes to /var/lib/drawbridge and a file "location" in Dir says
	// where.
	Dir string
	// Volatile trades durability for speed: data that would only be lost in a crash of the machine is
	// not flushed to disk. For tests only.
	Volatile bool
	// Progress is called with a line for each step that takes long. Nil is silent.
	Progress func(line string)
}

// settings are the server parameters that differ from PostgreSQL's defaults.
func (o Options) settings() map[string]string {
	settings := map[string]string{
		"jit":             "off", // our statements are short
		"log_checkpoints": "off",
		"log_timezone":    "UTC",
		"max_connections": "200",
		"timezone":        "UTC",
		// A commit waits for the disk, and these settings avoid writing twice: each checkpoint makes the
		// log repeat every page once in full, and pages that do not fit in memory are written early.
		"max_wal_size":    "4GB",
		"shared_buffers":  "256MB",
		"wal_compression": "on",
	}
	if o.Volatile {
		// Databases live for seconds; a visit by an autovacuum worker is work that no test asked for.
		settings["autovacuum_naptime"] = "1d"
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
		settings["max_connections"] = "300"
		settings["max_wal_size"] = "1GB"
		settings["synchronous_commit"] = "off"
		settings["wal_compression"] = "off" // it saves disk writes, which nothing waits for
	}
	return settings
}

// Server is a running PostgreSQL server.
type Server struct {
	url    string
	folder string
	// stop is nil once it was called.
	stop func() error
}

// URL is the connection string of the server's database, password included.
func (s *Server) URL() string { return s.url }

// Folder is where the data is: Options.Dir, or the folder named in its "location" file.
func (s *Server) Folder() string { return s.folder }

// Stop shuts the server down and frees the folder. It returns an error when
// the server had to be killed. Further calls do nothing.
func (s *Server) Stop() error {
	if s.stop == nil {
		return nil
	}
	stop := s.stop
	s.stop = nil
	return stop()
}
