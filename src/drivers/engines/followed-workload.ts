import type { Clock } from '../../os/clock.ts';
import type { Look, Workload } from '../driver.ts';
import type { LineListener } from '../shell.ts';

/**
 * Of containers: what changes which of them run, their names, ports and restart policies. Health checks run a program every few seconds
 * and change nothing of that.
 */
const CONTAINER_EVENTS = ['create', 'start', 'restart', 'die', 'destroy', 'rename', 'update', 'pause', 'unpause'];
const IMAGE_EVENTS = ['pull', 'load', 'import', 'tag', 'untag', 'delete', 'create', 'prune'];
const FILTERS = { type: ['container', 'image'], event: [...CONTAINER_EVENTS, ...IMAGE_EVENTS] };

/** A request that dockerd answers for as long as the connection lasts, with a line for each event. */
export const EVENTS_HELLO = `GET /events?filters=${encodeURIComponent(JSON.stringify(FILTERS))} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

const HEAD_END = '\r\n\r\n';
const MAX_HEAD = 16 * 1024;

/** How long a workload without an event is taken for current. An event can be missed only while dockerd itself misbehaves. */
export const FULL_LOOK_MS = 15 * 60_000;

export interface FollowedWorkload {
  /** Follows a new connection, which has said `EVENTS_HELLO`, and no earlier one. */
  follow(): LineListener;
  /** A `routine` look reads the workload only if it may have changed: after an event, without a connection for events, and rarely besides. */
  look(how: Look, signal: AbortSignal): Promise<Workload>;
  /** Whether a `routine` look would read nothing now. */
  isCurrent(): boolean;
}

/** Reads the workload of a dockerd no more often than its events call for: to list images is expensive. */
export function followedWorkload(
  read: (signal: AbortSignal) => Promise<Workload>,
  clock: Pick<Clock, 'now'>,
): FollowedWorkload {
  /** `head`: what has come of the head of the response; undefined once it has come and accepts the request. */
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
      // Before the look: an event meanwhile calls for another.
      const [before, at, wasFollowing] = [changes, clock.now(), isFollowing()];
      const workload = await read(signal);
      last = wasFollowing && isWhole(workload) ? { workload, changes: before, at } : undefined;
      return workload;
    },
  };
}

/** How much follows the whole head of a response that accepts the request. */
function afterHead(text: string): number | undefined {
  const end = text.indexOf(HEAD_END);
  return end >= 0 && /^HTTP\/1\.[01] 200 /.test(text) ? text.length - end - HEAD_END.length : undefined;
}

function isWhole({ containers, images, running }: Workload): boolean {
  return containers !== undefined && images !== undefined && running !== undefined;
}
