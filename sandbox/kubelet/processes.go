package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// runtime runs the processes of containers. Each container has a folder, which is their HOME and working directory.
type runtime struct {
	folder string
	// The user and group of the processes; -1 is those of the kubelet.
	owner int
	mutex sync.Mutex
	mains map[string]*mainProcess
}

func newRuntime(folder string) *runtime {
	// exec.Command searches here.
	os.Setenv("PATH", searchPath)
	owner := -1
	if os.Getuid() == 0 {
		owner = 65534 // nobody
	}
	return &runtime{folder: folder, owner: owner, mains: map[string]*mainProcess{}}
}

type process struct {
	*exec.Cmd
	stdin  *os.File
	stdout *os.File
	// nil with a terminal
	stderr   *os.File
	terminal bool
}

func (r *runtime) start(pod, container string, args []string, terminal bool) (*process, error) {
	home := filepath.Join(r.folder, pod, container)
	if err := errors.Join(os.MkdirAll(home, 0o755), os.Chown(home, r.owner, r.owner)); err != nil {
		return nil, err
	}
	p := &process{Cmd: exec.Command(args[0], args[1:]...), terminal: terminal}
	p.Dir = home
	// The plane finds the processes of containers by HOME when it ends.
	p.Env = []string{"PATH=" + searchPath, "HOME=" + home, "HOSTNAME=" + filepath.Base(pod)}
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: terminal}
	if r.owner >= 0 {
		p.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(r.owner), Gid: uint32(r.owner)}
	}
	theirs, err := p.open()
	defer closeAll(theirs...)
	for _, file := range theirs {
		// Otherwise the command could not open /dev/stdout.
		err = errors.Join(err, file.Chown(r.owner, r.owner))
	}
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// open opens a terminal, or three pipes. It returns the files of the command.
func (p *process) open() ([]*os.File, error) {
	if p.terminal {
		master, slave, err := pty.Open()
		if err != nil {
			return nil, err
		}
		p.stdin, p.stdout = master, master
		p.Stdin, p.Stdout, p.Stderr = slave, slave, slave
		p.Env = append(p.Env, "TERM=xterm")
		return []*os.File{slave}, nil
	}
	stdin, in, err1 := os.Pipe()
	out, stdout, err2 := os.Pipe()
	err, stderr, err3 := os.Pipe()
	p.stdin, p.stdout, p.stderr = in, out, err
	p.Stdin, p.Stdout, p.Stderr = stdin, stdout, stderr
	return []*os.File{stdin, stdout, stderr}, errors.Join(err1, err2, err3)
}

func (p *process) close() {
	closeAll(p.stdin, p.stdout, p.stderr)
}

func closeAll(files ...*os.File) {
	for _, file := range files {
		// A nil file returns an error.
		file.Close()
	}
}

// send copies the input of a client. Its end reaches the command only from the one client of a command without a
// terminal: other clients may attach later, and a terminal has no end of input.
func (p *process) send(in io.Reader, only bool) {
	if in != nil {
		drain(p.stdin, in)
	}
	if only && !p.terminal {
		p.stdin.Close()
	}
}

func (p *process) resize(sizes <-chan remotecommand.TerminalSize) {
	if !p.terminal || sizes == nil {
		return
	}
	for size := range sizes {
		pty.Setsize(p.stdin, &pty.Winsize{Rows: size.Height, Cols: size.Width})
	}
}

// drain copies until the end of the source. When the destination is gone, it discards the rest.
func drain(to io.Writer, from io.Reader) {
	if to != nil {
		io.Copy(to, from)
	}
	io.Copy(io.Discard, from)
}

// ExecInContainer runs a command to its end. As with containerd, the command continues when its client has gone: it keeps
// its terminal, so it gets no SIGHUP, and its output is discarded. Without a terminal, it reads the end of its input.
func (r *runtime) ExecInContainer(
	_ context.Context, pod, _, container string, args []string, in io.Reader, out, stderr io.WriteCloser, terminal bool,
	sizes <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	p, err := r.start(pod, container, args, terminal)
	if err != nil {
		return err
	}
	defer p.close()
	go p.send(in, true)
	go p.resize(sizes)
	var outputs sync.WaitGroup
	outputs.Go(func() { drain(out, p.stdout) })
	if !terminal {
		outputs.Go(func() { drain(stderr, p.stderr) })
	}
	outputs.Wait()
	err = p.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	code := exit.ExitCode()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		// As a shell reports it.
		code = 128 + int(status.Signal())
	}
	return utilexec.CodeExitError{Err: err, Code: code}
}

// AttachContainer shows the further output of the main process, until that ends or the client has gone.
func (r *runtime) AttachContainer(
	ctx context.Context, pod, _, container string, in io.Reader, out, stderr io.WriteCloser, terminal bool,
	sizes <-chan remotecommand.TerminalSize,
) error {
	m, position, err := r.main(pod, container, terminal)
	if err != nil {
		return err
	}
	go m.send(in, false)
	go m.resize(sizes)
	for c := range m.output(ctx, position, true) {
		to := out
		if c.stderr {
			to = stderr
		}
		if to == nil {
			continue
		}
		if _, err := to.Write(c.data); err != nil {
			return nil
		}
	}
	return nil
}

// PortForward connects to a port of this machine, because a Pod has no address of its own.
func (r *runtime) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer connection.Close()
	go func() {
		io.Copy(connection, stream)
		connection.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, connection)
	return err
}

// logs writes the output of the main process.
func (r *runtime) logs(ctx context.Context, pod, container string, follow bool, w http.ResponseWriter) error {
	m, _, err := r.main(pod, container, false)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain")
	flush := http.NewResponseController(w).Flush
	flush()
	for c := range m.output(ctx, 0, follow) {
		if _, err := w.Write(c.data); err != nil {
			return nil
		}
		flush()
	}
	return nil
}

// mainProcess is a shell that prints a line and then runs what clients that attach type. The first attach or logs starts
// it; it has a terminal if that client has one.
type mainProcess struct {
	*process
	mutex sync.Mutex
	// The newest output.
	chunks []chunk
	// The number of earlier chunks.
	dropped int
	ended   bool
	// Closed and replaced at each change.
	changed chan struct{}
}

type chunk struct {
	stderr bool
	data   []byte
}

const maxChunks = 10_000

// main returns the main process, and the position at which a client that attaches now begins.
func (r *runtime) main(pod, container string, terminal bool) (*mainProcess, int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	key := filepath.Join(pod, container)
	if m := r.mains[key]; m != nil {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		return m, m.dropped + len(m.chunks), nil
	}
	p, err := r.start(pod, container, []string{"sh", "-c", "echo started; exec sh"}, terminal)
	if err != nil {
		return nil, 0, err
	}
	m := &mainProcess{process: p, changed: make(chan struct{})}
	r.mains[key] = m
	go m.run()
	return m, 0, nil
}

func (m *mainProcess) run() {
	var outputs sync.WaitGroup
	outputs.Go(func() { m.record(m.stdout, false) })
	if !m.terminal {
		outputs.Go(func() { m.record(m.stderr, true) })
	}
	outputs.Wait()
	m.Wait()
	m.close()
	m.change(func() { m.ended = true })
}

func (m *mainProcess) record(from io.Reader, stderr bool) {
	for {
		data := make([]byte, 4096)
		n, err := from.Read(data)
		if err != nil {
			return
		}
		m.change(func() {
			m.chunks = append(m.chunks, chunk{stderr, data[:n]})
			if len(m.chunks) > maxChunks {
				m.chunks = m.chunks[1:]
				m.dropped++
			}
		})
	}
}

func (m *mainProcess) change(change func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}

// output yields the output from a position on. With follow, it waits for more until the process ends.
func (m *mainProcess) output(ctx context.Context, position int, follow bool) iter.Seq[chunk] {
	return func(yield func(chunk) bool) {
		for {
			m.mutex.Lock()
			position = max(position, m.dropped)
			chunks, ended, changed := m.chunks[position-m.dropped:], m.ended, m.changed
			m.mutex.Unlock()
			for _, c := range chunks {
				if !yield(c) {
					return
				}
			}
			position += len(chunks)
			if len(chunks) > 0 {
				continue
			}
			if ended || !follow {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}
