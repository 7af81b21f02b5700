// Real Go clients that a test drives: one command per line comes in, answers and reports go out as JSON lines.
//
// A command is "number verb key=value …" with percent-encoded values; commands run side by side.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const lineBytesMax = 1 << 20

var verbs = map[string]func(*session, command) (fields, error){
	"ping":       func(*session, command) (fields, error) { return fields{}, nil },
	"stop":       func(s *session, c command) (fields, error) { return fields{}, s.close(c.text("name", "")) },
	"produce":    produce,
	"consume":    consume,
	"assignment": assignment,
	"pull":       pull,
	"poll":       poll,
	"transact":   transact,
	"request":    request,
	"admin":      administer,
}

func main() {
	rlog.SetLogLevel("warn") // to stderr, which is the test's log
	running := newSession()
	var commands sync.WaitGroup
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		commands.Add(1)
		go func() {
			defer commands.Done()
			serve(running, words)
		}()
	}
	running.closeAll()
	commands.Wait()
}

func serve(running *session, words []string) {
	var number int
	if _, err := fmt.Sscan(words[0], &number); err != nil {
		return
	}
	result, err := perform(running, words[1:])
	if err != nil {
		report(fields{"answer": number, "ok": false, "error": err.Error()})
		return
	}
	answer := fields{"answer": number, "ok": true}
	for key, value := range result {
		answer[key] = value
	}
	report(answer)
}

func perform(running *session, words []string) (fields, error) {
	given, err := parse(words)
	if err != nil {
		return nil, err
	}
	act, known := verbs[given.verb]
	if !known {
		return nil, fmt.Errorf("unknown verb: %s", given.verb)
	}
	return act(running, given)
}
