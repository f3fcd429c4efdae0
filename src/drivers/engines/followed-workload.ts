import type { Clock } from '../../os/clock.ts';
import type { Look, Workload } from '../driver.ts';
import type { LineListener } from '../shell.ts';

/**
 * Events of containers that change the list of running ones, their names, ports or restart policies. Health checks run a program every few seconds
 * and change none of these.
 */
const CONTAINER_EVENTS = ['create', 'start', 'restart', 'die', 'destroy', 'rename', 'update', 'pause', 'unpause'];
const IMAGE_EVENTS = ['pull', 'load', 'import', 'tag', 'untag', 'delete', 'create', 'prune'];
const FILTERS = { type: ['container', 'image'], event: [...CONTAINER_EVENTS, ...IMAGE_EVENTS] };

/** A request that dockerd answers for as long as the connection lasts, with a line for each event. */
export const EVENTS_HELLO = `GET /events?filters=${encodeURIComponent(JSON.stringify(FILTERS))} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

const HEAD_END = '\r\n\r\n';
const MAX_HEAD = 16 * 1024;

/** Milliseconds that a workload without an event counts as current. An event can be missed only while dockerd itself misbehaves. */
export const FULL_LOOK_MS = 15 * 60_000;

export interface FollowedWorkload {
  /** Follows a new connection, which has sent `EVENTS_HELLO`, and drops any earlier one. */
  follow(): LineListener;
  /**
   * Returns the workload. A `routine` look reads it only if it may have changed: after an event, without a connection for events, and rarely besides.
   */
  look(how: Look, signal: AbortSignal): Promise<Workload>;
  /** True if a `routine` look would read nothing now. */
  isCurrent(): boolean;
}

/** Reads the workload of a dockerd no more often than its events require, because listing images is expensive. */
export function followedWorkload(
  read: (signal: AbortSignal) => Promise<Workload>,
  clock: Pick<Clock, 'now'>,
): FollowedWorkload {
  /** `head`: the received part of the response's head; undefined once it is complete and accepts the request. */
  let line: { head: string | undefined } | undefined;
  /** Counts events, and connections, between which any number may be missed. */
  let changes = 0;
  let last: { workload: Workload; changes: number; at: number } | undefined;

  const isFollowing = () => line !== undefined && line.head === undefined;
  const current = () =>
    isFollowing() && last?.changes === changes && clock.now() - last.at < FULL_LOOK_MS ? last.workload : undefined;

  return {
    isCurrent: () => current() !== undefined,
    follow() {
      const own = { head: '' as string | undefined };
      line = own;
      changes += 1;
      return {
        heard(bytes) {
          const text = own.head === undefined ? undefined : own.head + Buffer.from(bytes).toString('latin1');
          const rest = text === undefined ? bytes.length : afterHead(text);
          // Refused, or not HTTP: the connection still shows the end of dockerd.
          own.head = rest === undefined ? text?.slice(0, MAX_HEAD) : undefined;
          if (rest !== undefined && rest > 0 && line === own) changes += 1;
        },
        ended() {
          if (line !== own) return;
          line = undefined;
          changes += 1;
        },
      };
    },
    async look(how, signal) {
      const known = how === 'routine' ? current() : undefined;
      if (known) return known;
      // Read before the look: an event in the meantime calls for another.
      const [before, at, wasFollowing] = [changes, clock.now(), isFollowing()];
      const workload = await read(signal);
      last = wasFollowing && isWhole(workload) ? { workload, changes: before, at } : undefined;
      return workload;
    },
  };
}

/** Returns the length of the text after a complete head that accepts the request, or undefined. */
function afterHead(text: string): number | undefined {
  const end = text.indexOf(HEAD_END);
  return end >= 0 && /^HTTP\/1\.[01] 200 /.test(text) ? text.length - end - HEAD_END.length : undefined;
}

function isWhole({ containers, images, running }: Workload): boolean {
  return containers !== undefined && images !== undefined && running !== undefined;
}
