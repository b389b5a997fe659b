package harness

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
)

// The protocols of real servers.
const (
	SOCKS       = "socks"
	Shadowsocks = "shadowsocks"
	VLESS       = "vless"
	Trojan      = "trojan"
	Hysteria2   = "hysteria2"
)

// Protocols are all of them. Each carries TCP and UDP.
var Protocols = []string{SOCKS, Shadowsocks, VLESS, Trojan, Hysteria2}

// protocolPair returns a server's inbound and the outbound that goes with it, but for their addresses.
func protocolPair(owner Owner, protocol string) (inbound, outbound JSON) {
	owner.Helper()
	certificate := SelfSigned(owner)
	serverTLS := JSON{"enabled": true, "server_name": ServerName, "certificate": certificate.Certificate, "key": certificate.Key}
	clientTLS := JSON{"enabled": true, "server_name": ServerName, "certificate": certificate.Certificate}
	secret := randomBytes(16)
	password := base64.StdEncoding.EncodeToString(secret)
	switch protocol {
	case SOCKS:
		return JSON{}, JSON{}
	case Shadowsocks:
		method := "2022-blake3-aes-128-gcm"
		return JSON{"method": method, "password": password}, JSON{"method": method, "password": password}
	case VLESS:
		user := fmt.Sprintf("%x-%x-%x-%x-%x", secret[:4], secret[4:6], secret[6:8], secret[8:10], secret[10:])
		return JSON{"users": []JSON{{"uuid": user}}, "tls": serverTLS}, JSON{"uuid": user, "tls": clientTLS}
	case Trojan:
		return JSON{"users": []JSON{{"password": password}}, "tls": serverTLS}, JSON{"password": password, "tls": clientTLS}
	case Hysteria2:
		// QUIC has no default for the protocol that TLS agrees on.
		serverTLS["alpn"], clientTLS["alpn"] = []string{"h3"}, []string{"h3"}
		return JSON{"users": []JSON{{"password": password}}, "tls": serverTLS}, JSON{"password": password, "tls": clientTLS}
	}
	owner.Fatalf("no server speaks %q", protocol)
	return nil, nil
}

func randomBytes(count int) []byte {
	content := make([]byte, count)
	_, _ = rand.Read(content) // never fails
	return content
}
