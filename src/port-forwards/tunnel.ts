import type { Duplex } from 'node:stream';

/**
 * Carries bytes both ways until both sides have said their last. Each side may end its half while the other goes on, a slow
 * reader holds back the writer, and where one side breaks off the other is broken off too.
 */
export function tunnel(one: Duplex, other: Duplex): void {
  carry(one, other);
  carry(other, one);
}

function carry(from: Duplex, to: Duplex): void {
  from.on('error', () => to.destroy());
  from.once('close', () => {
    if (!from.readableEnded || !from.writableFinished) to.destroy();
  });
  from.pipe(to);
}
