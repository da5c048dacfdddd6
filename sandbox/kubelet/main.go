// A kubelet for tests. It serves the streaming API of a kubelet (exec, attach, port-forward, and logs) and runs local
// processes, no containers. kwok reports the status of the node and of its Pods.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// version is set by the build.
var version = "unknown"

// The common name of the client certificate of the API server; it may do everything here, and no other client may do
// anything.
const apiServer = "kube-apiserver-kubelet-client"

// The library closes a connection that has been idle for so long; the kubelet's default.
const idleTimeout = 4 * time.Hour

// How long the library waits for the streams of a connection.
const streamTimeout = remotecommand.DefaultStreamCreationTimeout

func main() {
	printVersion := flag.Bool("version", false, "print the version")
	address := flag.String("address", "", "host:port of 127.0.0.1 to listen on")
	pki := flag.String("pki", "", "folder of ca.crt, kubelet.crt, and kubelet.key")
	containers := flag.String("containers", "", "folder in which each container gets one")
	flag.Parse()
	if *printVersion {
		fmt.Println("sandbox-kubelet " + version)
		return
	}
	log.Fatal(serve(*address, *pki, *containers))
}

func serve(address, pki, containers string) error {
	config, err := tlsConfig(pki)
	if err != nil {
		return err
	}
	server := http.Server{Addr: address, TLSConfig: config, Handler: handler(newRuntime(containers))}
	return server.ListenAndServeTLS("", "")
}

func tlsConfig(pki string) (*tls.Config, error) {
	serving, err := tls.LoadX509KeyPair(filepath.Join(pki, "kubelet.crt"), filepath.Join(pki, "kubelet.key"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority)
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{serving},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
		// This authority also signs the certificates of users.
		VerifyConnection: func(state tls.ConnectionState) error {
			if name := state.PeerCertificates[0].Subject.CommonName; name != apiServer {
				return fmt.Errorf("the client is %q; allowed: %s", name, apiServer)
			}
			return nil
		},
	}, nil
}

func handler(run *runtime) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		options, err := remotecommand.NewOptions(r)
		if command := r.URL.Query()["command"]; err != nil || len(command) == 0 {
			http.Error(w, "the request has no command, or no stream", http.StatusBadRequest)
		} else {
			remotecommand.ServeExec(w, r, run, pod(r), "", r.PathValue("container"), command, options,
				idleTimeout, streamTimeout, remotecommand.SupportedStreamingProtocols)
		}
	})
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		options, err := remotecommand.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		remotecommand.ServeAttach(w, r, run, pod(r), "", r.PathValue("container"), options,
			idleTimeout, streamTimeout, remotecommand.SupportedStreamingProtocols)
	})
	mux.HandleFunc("/portForward/{namespace}/{pod}", func(w http.ResponseWriter, r *http.Request) {
		options, err := portforward.NewV4Options(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, r, run, pod(r), "", options,
			idleTimeout, streamTimeout, portforward.SupportedProtocols)
	})
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		follow := query.Get("follow") == "true"
		query.Del("follow")
		if len(query) > 0 {
			http.Error(w, fmt.Sprintf("found options %s; allowed: follow", query.Encode()), http.StatusBadRequest)
			return
		}
		if err := run.logs(r.Context(), pod(r), r.PathValue("container"), follow, w); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}

func pod(r *http.Request) string {
	return filepath.Join(r.PathValue("namespace"), r.PathValue("pod"))
}
