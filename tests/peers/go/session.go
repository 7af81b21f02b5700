package main

import (
	"fmt"
	"sync"
)

// session is what runs in this process right now, by the name the test gave it, and how each of them is ended.
type session struct {
	lock    sync.Mutex
	closers map[string]func() error
	clients map[string]interface{}
}

func newSession() *session {
	return &session{closers: map[string]func() error{}, clients: map[string]interface{}{}}
}

func (s *session) opened(name string, client interface{}, closer func() error) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if _, running := s.closers[name]; running {
		return fmt.Errorf("already running: %s", name)
	}
	s.closers[name] = closer
	s.clients[name] = client
	return nil
}

func (s *session) ended(name string) func() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	closer := s.closers[name]
	delete(s.closers, name)
	delete(s.clients, name)
	return closer
}

func (s *session) client(name string) interface{} {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.clients[name]
}

func (s *session) close(name string) error {
	if closer := s.ended(name); closer != nil {
		return closer()
	}
	return nil
}

func (s *session) closeAll() {
	s.lock.Lock()
	names := []string{}
	for name := range s.closers {
		names = append(names, name)
	}
	s.lock.Unlock()
	for _, name := range names {
		if err := s.close(name); err != nil {
			report(fields{"event": "closing", "name": name, "error": err.Error()})
		}
	}
}
