import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { TEXT_TYPE } from './wire-texts.ts';

/** What the parser says, where it is not simply a bad request. */
const STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** Answers what is no HTTP request, in text like every refusal, and closes the connection. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = STATUS[error.code ?? ''] ?? 400;
  const text = STATUS_CODES[status] ?? '';
  socket.end(
    [
      `HTTP/1.1 ${status} ${text}`,
      'Connection: close',
      `Content-Type: ${TEXT_TYPE}`,
      `Content-Length: ${text.length}`,
      '',
      text,
    ].join('\r\n'),
  );
}
