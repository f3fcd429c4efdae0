import { createSocket } from 'node:dgram';

const REPLY_MS = 2_000;

/** What comes back for a datagram to this port of 127.0.0.1; empty when nothing does. */
export function echoed(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    const end = (text: string) => {
      clearTimeout(timer);
      socket.close(() => resolve(text));
    };
    const timer = setTimeout(() => end(''), REPLY_MS);
    socket.once('message', (bytes) => end(bytes.toString()));
    socket.once('error', () => end(''));
    socket.send('hello', port, '127.0.0.1');
  });
}

/** A server in a container that sends datagrams to port 7 back, by the guest's own Perl; the guest's root is mounted at `/guest`. */
export const ECHO_SERVER = [
  '/bin/busybox',
  'chroot',
  '/guest',
  'perl',
  '-e',
  'use IO::Socket::INET; $s = IO::Socket::INET->new(Proto => "udp", LocalPort => 7); $s->send($m) while $s->recv($m, 99)',
];
