import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * Carries bytes both ways until both sides have said their last. Each side may end its half while the other goes on, a slow
 * reader holds back the writer, and where one side breaks off the other is broken off too.
 */
export function tunnel(one: Duplex, other: Duplex): void {
  carry(one, other);
  carry(other, one);
}

/** Ends both halves at once. A plain end would look like one half, and a peer may wait for the other for ever. */
export function breakOff(stream: Duplex): void {
  if (stream instanceof Socket) stream.resetAndDestroy();
  else stream.destroy();
}

function carry(from: Duplex, to: Duplex): void {
  from.on('error', () => breakOff(to));
  from.once('close', () => {
    if (!from.readableEnded || !from.writableFinished) breakOff(to);
  });
  from.pipe(to);
}
