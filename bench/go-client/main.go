// A client of the class of Rancher Desktop's rdctl: Go, cobra, one request. The reference of bench/go-client.ts.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

type connection struct {
	User     string `json:"user"`
	Password string `json:"password"`
	Port     int    `json:"port"`
}

func listSettings(*cobra.Command, []string) error {
	home := os.Getenv("RDCTL_HOME")
	content, err := os.ReadFile(filepath.Join(home, "app-engine.json"))
	if err != nil {
		return err
	}
	var found connection
	if err := json.Unmarshal(content, &found); err != nil {
		return err
	}
	socket := filepath.Join(home, "state", "run", "service.sock")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial}}
	request, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/v1/settings", found.Port), nil)
	if err != nil {
		return err
	}
	request.SetBasicAuth(found.User, found.Password)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", response.Status)
	}
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}

func main() {
	root := &cobra.Command{Use: "client"}
	version := func(*cobra.Command, []string) { fmt.Println("client version 0") }
	root.AddCommand(&cobra.Command{Use: "version", Run: version})
	root.AddCommand(&cobra.Command{Use: "list-settings", RunE: listSettings})
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}
