package harness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
)

// What SOCKS5 (RFC 1928) says by single bytes.
const (
	socksVersion        = 5
	socksConnect        = 1
	socksAssociate      = 3
	socksIPv4           = 1
	socksDomain         = 3
	socksIPv6           = 4
	socksSucceeded      = 0
	socksFailed         = 1
	socksUnreachable    = 4
	socksNotUnderstood  = 7
	socksNoPassword     = 0
	socksPacketOverhead = 3
)

// acceptSOCKS reads a client's greeting and request, and returns the command and where the client wants to go.
func acceptSOCKS(conn io.ReadWriter) (command byte, destination string, err error) {
	var header [2]byte
	if _, err = io.ReadFull(conn, header[:]); err != nil {
		return 0, "", err
	}
	if header[0] != socksVersion {
		return 0, "", fmt.Errorf("version %d", header[0])
	}
	if _, err = io.CopyN(io.Discard, conn, int64(header[1])); err != nil {
		return 0, "", err
	}
	if _, err = conn.Write([]byte{socksVersion, socksNoPassword}); err != nil {
		return 0, "", err
	}
	var request [3]byte
	if _, err = io.ReadFull(conn, request[:]); err != nil {
		return 0, "", err
	}
	destination, err = readAddress(conn)
	return request[1], destination, err
}

// answerSOCKS tells the client how its request went.
func answerSOCKS(conn io.Writer, status byte) error {
	_, err := conn.Write([]byte{socksVersion, status, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err
}

func readAddress(reader io.Reader) (string, error) {
	var kind [1]byte
	if _, err := io.ReadFull(reader, kind[:]); err != nil {
		return "", err
	}
	length := map[byte]int{socksIPv4: net.IPv4len, socksIPv6: net.IPv6len}[kind[0]]
	if kind[0] == socksDomain {
		var count [1]byte
		if _, err := io.ReadFull(reader, count[:]); err != nil {
			return "", err
		}
		length = int(count[0])
	}
	if length == 0 {
		return "", errors.New("no address")
	}
	content := make([]byte, length+2)
	if _, err := io.ReadFull(reader, content); err != nil {
		return "", err
	}
	host := string(content[:length])
	if kind[0] != socksDomain {
		address, _ := netip.AddrFromSlice(content[:length])
		host = address.String()
	}
	return net.JoinHostPort(host, fmt.Sprint(binary.BigEndian.Uint16(content[length:]))), nil
}

// appendAddress writes an IPv4 address and port as SOCKS has them.
func appendAddress(content []byte, address netip.AddrPort) []byte {
	content = append(content, socksIPv4)
	content = append(content, address.Addr().AsSlice()...)
	return binary.BigEndian.AppendUint16(content, address.Port())
}

// requestSOCKS makes a request of a server and returns the address that it answers with.
func requestSOCKS(conn io.ReadWriter, command byte, destination netip.AddrPort) (string, error) {
	if _, err := conn.Write([]byte{socksVersion, 1, socksNoPassword}); err != nil {
		return "", err
	}
	var method [2]byte
	if _, err := io.ReadFull(conn, method[:]); err != nil {
		return "", err
	}
	if _, err := conn.Write(appendAddress([]byte{socksVersion, command, 0}, destination)); err != nil {
		return "", err
	}
	var answer [3]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return "", err
	}
	if answer[1] != socksSucceeded {
		return "", fmt.Errorf("the SOCKS server answers %d", answer[1])
	}
	return readAddress(conn)
}
