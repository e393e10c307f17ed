package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// kube is the control plane, through kubectl and helm.
type kube struct {
	settings
	proxy *exec.Cmd // kubectl proxy, for what is asked often
	api   string    // its address
}

func newKube(ctx context.Context, s settings) (*kube, error) {
	k := &kube{settings: s, proxy: exec.Command(s.kubectl, "proxy", "--port=0")}
	out, err := k.proxy.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := k.proxy.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		k.close()
		return nil, fmt.Errorf("kubectl proxy: %w", err)
	}
	k.api = "http://" + strings.TrimSpace(strings.TrimPrefix(line, "Starting to serve on "))
	return k, k.get(ctx, "/version", &struct{}{})
}

func (k *kube) close() {
	_ = k.proxy.Process.Kill()
	_ = k.proxy.Wait() // it was killed
}

// get asks the API server for an object.
func (k *kube) get(ctx context.Context, path string, into any) error {
	status, body, err := ask(ctx, http.MethodGet, k.api+path, nil)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("GET %s: %d %s", path, status, body)
	}
	return json.Unmarshal(body, into)
}

// post sends the API server an object.
func (k *kube) post(ctx context.Context, path string, object any) (status int, answer []byte, err error) {
	body, err := json.Marshal(object)
	if err != nil {
		return 0, nil, err
	}
	return ask(ctx, http.MethodPost, k.api+path, body)
}

// ctl runs kubectl, input on its standard input.
func (k *kube) ctl(ctx context.Context, input string, args ...string) (string, error) {
	return command(ctx, input, k.kubectl, args...)
}

// helmRun runs helm.
func (k *kube) helmRun(ctx context.Context, input string, args ...string) (string, error) {
	return command(ctx, input, k.helm, args...)
}

func command(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	return out.String(), nil
}

// askBound is the longest that one question may take.
const askBound = 10 * time.Second

// client keeps no connections: the next process at an address is another one.
var client = &http.Client{Timeout: askBound, Transport: &http.Transport{DisableKeepAlives: true}}

func ask(ctx context.Context, method, url string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// errLate: something did not come true in time.
var errLate = errors.New("not in time")

// await polls until nothing is wrong. The error says what was last.
func await(ctx context.Context, bound time.Duration, wrong func() error) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := wrong()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w, %v: %w", errLate, bound, err)
		}
	}
}
