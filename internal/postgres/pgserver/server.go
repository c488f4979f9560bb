package pgserver

// Options says where a server keeps its data, and how.
type Options struct {
	// Dir is the folder of the server; it is created as needed. Where the user
	// that the server must run as cannot enter it, the data goes to
	// /var/lib/drawbridge and Dir keeps a file "location" that says so.
	Dir string
	// Volatile trades durability for speed: what a crash of the machine would
	// lose is not written. For tests only.
	Volatile bool
	// Progress is told, one line each, what takes long. Nil is silent.
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
		// What a commit waits for is the disk, and what keeps the disk busy is written
		// twice: a checkpoint has every page logged whole once more, and a page that
		// does not fit in memory goes out before its time.
		"max_wal_size":    "4GB",
		"shared_buffers":  "256MB",
		"wal_compression": "on",
	}
	if o.Volatile {
		// Databases live for seconds, and a worker that visits one is work that no test asked for.
		settings["autovacuum_naptime"] = "1d"
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
		settings["max_connections"] = "300"
		settings["max_wal_size"] = "1GB"
		settings["synchronous_commit"] = "off"
		settings["wal_compression"] = "off" // it would save a disk that nobody waits for
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

// Folder is where the data is: Options.Dir, or the place that it names.
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
