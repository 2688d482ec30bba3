// tlspeer says whether Go accepts our certificates: its verification, its client and its server.
//
//	tlspeer verify CA CERTIFICATE server|client [NAME]   the chain, as crypto/x509 sees it
//	tlspeer dial ADDRESS NAME CA CERTIFICATE KEY         mutual TLS as a client, then one request
//	tlspeer accept CA CERTIFICATE KEY                    one connection; prints its port first
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

func main() {
	commands := map[string]func([]string) error{"verify": verify, "dial": dial, "accept": accept}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func verify(args []string) error {
	roots, err := pool(args[0])
	if err != nil {
		return err
	}
	data, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	block, _ := pem.Decode(data)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	usage := map[string]x509.ExtKeyUsage{
		"server": x509.ExtKeyUsageServerAuth, "client": x509.ExtKeyUsageClientAuth,
	}[args[2]]
	options := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}
	if len(args) > 3 {
		options.DNSName = args[3]
	}
	_, err = leaf.Verify(options)
	return err
}

func dial(args []string) error {
	roots, err := pool(args[2])
	if err != nil {
		return err
	}
	own, err := firstBlock(args[3], args[4])
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{own}, ServerName: args[1],
	}}}
	// A reader of unknown length: the body goes out chunked, as a Sonobuoy worker's.
	body := io.MultiReader(strings.NewReader("from "), strings.NewReader("go"))
	request, err := http.NewRequest("PUT", "https://"+args[0]+"/", body)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status, tls.VersionName(answer.TLS.Version))
	return nil
}

func accept(args []string) error {
	roots, err := pool(args[0])
	if err != nil {
		return err
	}
	own, err := tls.LoadX509KeyPair(args[1], args[2])
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		ClientCAs: roots, Certificates: []tls.Certificate{own},
		ClientAuth: tls.RequireAndVerifyClientCert,
	})
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	connection, err := listener.Accept()
	if err != nil {
		return err
	}
	defer connection.Close()
	peer := connection.(*tls.Conn)
	if err := peer.Handshake(); err != nil {
		return err
	}
	leaf := peer.ConnectionState().PeerCertificates[0]
	fmt.Println(leaf.URIs[0], leaf.DNSNames[0])
	return nil
}

func pool(path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := x509.NewCertPool()
	if !found.AppendCertsFromPEM(data) {
		return nil, errors.New("no certificate in " + path)
	}
	return found, nil
}

// firstBlock reads a pair the way a Sonobuoy worker does: the first PEM block of each, and of keys
// only the SEC1 form.
func firstBlock(certificate, key string) (tls.Certificate, error) {
	var found tls.Certificate
	data, err := os.ReadFile(certificate)
	if err != nil {
		return found, err
	}
	block, _ := pem.Decode(data)
	found.Certificate = [][]byte{block.Bytes}
	if data, err = os.ReadFile(key); err != nil {
		return found, err
	}
	block, _ = pem.Decode(data)
	found.PrivateKey, err = x509.ParseECPrivateKey(block.Bytes)
	return found, err
}
