// Load on an aggregator, and single requests, with Go's own HTTP and TLS: what a worker written in
// Go does. Prints one JSON object. Certificates are verified as Go verifies them.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

var (
	address     = flag.String("url", "", "https://HOST:PORT")
	ca          = flag.String("ca", "", "file of the CA")
	cert        = flag.String("cert", "", "file of the client certificate")
	key         = flag.String("key", "", "file of its key")
	mode        = flag.String("mode", "progress", "put, progress, handshake, results or fleet")
	plugin      = flag.String("plugin", "load", "the plugin's name")
	connections = flag.Int("connections", 50, "connections, or workers of a fleet")
	seconds     = flag.Float64("seconds", 5, "length of the run")
	count       = flag.Int("count", 500, "results")
	size        = flag.Int("size", 1<<20, "bytes of a result")
	tickets     = flag.Bool("tickets", false, "let connections resume TLS sessions")
	updateEvery = flag.Float64("update-every", 20, "fleet: seconds between two updates of a worker")
	uploads     = flag.Bool("uploads", true, "fleet: whether each worker sends its result")
	spread      = flag.Bool("spread", false, "give each worker an address of its own (127.1.x.y)")
	idle        = flag.Float64("idle", 0, "close connections that are idle for so many seconds; 0: never")
	beatEvery   = flag.Float64("beat-every", 15, "fleet: seconds between two heartbeats of a worker")
)

// history is the last update of a worker that was sent, and the last one that was answered with 200.
type history struct {
	Sent     int `json:"sent"`
	Answered int `json:"answered"`
}

type tally struct {
	sync.Mutex
	Statuses  map[string]map[int]int        `json:"statuses"`
	Errors    map[string]int                `json:"errors"`
	Millis    map[string]map[string]float64 `json:"milliseconds"`
	Digests   map[string]string             `json:"digests,omitempty"`
	Progress  map[string]history            `json:"progress,omitempty"`
	Seconds   float64                       `json:"seconds"`
	Bytes     int64                         `json:"bytes"`
	durations map[string][]float64
}

func newTally() *tally {
	return &tally{
		Statuses: map[string]map[int]int{}, Errors: map[string]int{}, Digests: map[string]string{},
		Progress: map[string]history{},
		Millis:   map[string]map[string]float64{}, durations: map[string][]float64{},
	}
}

func (t *tally) add(kind string, status int, err error, took time.Duration) {
	t.Lock()
	defer t.Unlock()
	if err != nil {
		t.Errors[kind+": "+err.Error()]++
		return
	}
	if t.Statuses[kind] == nil {
		t.Statuses[kind] = map[int]int{}
	}
	t.Statuses[kind][status]++
	t.durations[kind] = append(t.durations[kind], float64(took.Microseconds())/1000)
}

func (t *tally) print() {
	for kind, all := range t.durations {
		slices.Sort(all)
		at := func(share float64) float64 { return all[int(share*float64(len(all)-1))] }
		t.Millis[kind] = map[string]float64{
			"p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": at(1), "count": float64(len(all)),
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(t); err != nil {
		log.Fatal(err)
	}
}

func transport(number int, kept bool) *http.Transport {
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(*ca)
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		log.Fatal("no CA in ", *ca, ": ", err)
	}
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
	if *tickets {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	dialer := &net.Dialer{}
	if *spread {
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 1, byte(number>>8), byte(number))}
	}
	return &http.Transport{
		TLSClientConfig: config, MaxIdleConnsPerHost: 1, DisableKeepAlives: !kept,
		DialContext: dialer.DialContext, IdleConnTimeout: time.Duration(*idle * float64(time.Second)),
	}
}

type worker struct {
	client *http.Client
	node   string
	tally  *tally
}

func newWorker(t *tally, number int, kept bool) *worker {
	client := &http.Client{Transport: transport(number, kept), Timeout: 5 * time.Minute}
	return &worker{client, fmt.Sprintf("n%d", number), t}
}

func (w *worker) send(kind, method, path string, body []byte, chunked bool) int {
	var content io.Reader = bytes.NewReader(body)
	if chunked {
		content = io.MultiReader(content) // hides the length, as Sonobuoy's worker does
	}
	url := fmt.Sprintf("%s/api/v1/%s/by-node/%s/%s", *address, path, w.node, *plugin)
	request, err := http.NewRequest(method, url, content)
	if err != nil {
		log.Fatal(err)
	}
	if method == http.MethodPut {
		request.Header.Set("Content-Type", "application/octet-stream")
		request.Header.Set("Content-Disposition", "attachment;filename=result.bin")
	}
	began := time.Now()
	answer, err := w.client.Do(request)
	if err != nil {
		w.tally.add(kind, 0, err, 0)
		return 0
	}
	_, err = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	w.tally.add(kind, answer.StatusCode, err, time.Since(began))
	return answer.StatusCode
}

func (w *worker) progress(completed int) {
	body := fmt.Sprintf(`{"msg":"step %d of the work","total":1000000,"completed":%d,"failures":["one"]}`, completed, completed)
	status := w.send("progress", http.MethodPost, "progress", []byte(body), false)
	w.tally.Lock()
	defer w.tally.Unlock()
	seen := w.tally.Progress[w.node]
	seen.Sent = completed
	if status == http.StatusOK {
		seen.Answered = completed
	}
	w.tally.Progress[w.node] = seen
}

func content(seed uint64) []byte {
	body := make([]byte, *size)
	source := rand.NewPCG(seed, 7)
	for at := 0; at+8 <= len(body); at += 8 {
		binary.LittleEndian.PutUint64(body[at:], source.Uint64())
	}
	return body
}

func (w *worker) result(body []byte, digest [sha256.Size]byte) {
	// As workers do when the connection breaks; 409 then says that it had come.
	status, broken := 0, 0
	for ; status == 0 && broken < 5; broken++ {
		time.Sleep(time.Duration(broken) * time.Second)
		status = w.send("result", http.MethodPut, "results", body, true)
	}
	if status == http.StatusOK || (status == http.StatusConflict && broken > 1) {
		w.tally.Lock()
		w.tally.Digests[w.node] = base64.StdEncoding.EncodeToString(digest[:])
		w.tally.Bytes += int64(len(body))
		w.tally.Unlock()
	}
}

func (w *worker) live(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 11))
	every := func(period float64) (*time.Ticker, <-chan time.Time) {
		first := time.Duration(random.Float64() * period * float64(time.Second))
		select {
		case <-ctx.Done():
		case <-time.After(first / 10):
		}
		ticker := time.NewTicker(time.Duration(period * float64(time.Second)))
		return ticker, ticker.C
	}
	var upload <-chan time.Time // never
	if *uploads {
		upload = time.After(time.Duration(random.Float64() * 0.8 * *seconds * float64(time.Second)))
	}
	time.Sleep(time.Duration(random.Float64() * min(*beatEvery, *seconds/2) * float64(time.Second)))
	updates, update := every(*updateEvery)
	beats, beat := every(*beatEvery)
	defer updates.Stop()
	defer beats.Stop()
	for completed := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-update:
			completed++
			w.progress(completed)
		case <-beat:
			w.send("beat", http.MethodGet, "health", nil, false)
		case <-upload:
			body := content(seed)
			w.result(body, sha256.Sum256(body))
		}
	}
}

func main() {
	flag.Parse()
	t := newTally()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(*seconds*float64(time.Second)))
	defer cancel()
	var group sync.WaitGroup
	each := func(n int, work func(int)) {
		for number := range n {
			group.Add(1)
			go func() { defer group.Done(); work(number) }()
		}
		group.Wait()
	}
	switch *mode {
	case "put":
		body, err := io.ReadAll(os.Stdin)
		if err != nil {
			log.Fatal(err)
		}
		newWorker(t, 0, false).send("result", http.MethodPut, "results", body, true)
	case "progress", "handshake":
		each(*connections, func(number int) {
			w := newWorker(t, number, *mode == "progress")
			for completed := 0; ctx.Err() == nil; completed++ {
				w.progress(completed)
			}
		})
	case "results":
		bodies := make([][]byte, *count)
		digests := make([][sha256.Size]byte, *count)
		each(*count, func(number int) {
			bodies[number] = content(uint64(number))
			digests[number] = sha256.Sum256(bodies[number])
		})
		// Only the load takes time from now on.
		began = time.Now()
		each(*count, func(number int) {
			newWorker(t, number, false).result(bodies[number], digests[number])
		})
	case "fleet":
		each(*connections, func(number int) { newWorker(t, number, true).live(ctx, uint64(number)) })
	default:
		log.Fatal("no such mode: ", *mode)
	}
	t.Seconds = time.Since(began).Seconds()
	t.print()
}
