package fakepg

// Freeze makes the server answer nothing any more, cancel requests and new
// connections included, as a stopped process would: the sockets stay open. It
// ends with Close.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
}

// thaw blocks while the server is frozen.
func (s *Server) thaw(c *conn) {
	s.mu.Lock()
	frozen := s.frozen
	s.mu.Unlock()
	if frozen {
		<-c.gone
	}
}
