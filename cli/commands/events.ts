import { requireService } from '../../src/client/session/find.ts';
import { EVENT_KINDS, type EventKind } from '../../src/events/event.ts';
import { parseEventId } from '../../src/events/event-id.ts';
import { noArguments } from '../arguments/arguments.ts';
import { quote, usage } from '../arguments/values.ts';
import { defineCommand } from '../command.ts';
import { showMessages } from '../views/event-text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';
import { follow, noEvents } from './events/follow.ts';

export const events = defineCommand({
  name: 'events',
  summary: 'Show what happens, as it happens',
  usage: '',
  description: `Prints a line for each event until Ctrl-C: changes of settings and power, what became of them, steps of the backend,
drift, conditions, applies, snapshots, port forwards and notices. It stays when the service restarts, and misses no change.
With -o json, each line is a document of schemas/event.json; --since continues after the \`id\` of one.
Exit codes: 130 after Ctrl-C; 1 no service is running.

  rdctl events
  rdctl events --kind change,outcome -o json`,
  flags: {
    kind: {
      type: 'strings',
      offers: [...EVENT_KINDS],
      summary: 'Only these kinds, such as change,outcome (repeatable; default all but status)',
      placeholder: 'KIND',
    },
    since: { type: 'string', summary: 'Continue after the event with this id', placeholder: 'ID' },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run(invocation) {
    const { args, flags, io } = invocation;
    noArguments(args, 'events');
    const kinds = kindsOf(flags.kind);
    const { since } = flags;
    if (since !== undefined && !parseEventId(since)) throw usage(`${quote(since)} is not the id of an event`);
    const { client } = await requireService(invocation);
    if (!client.events) throw noEvents();
    return follow(invocation, { kinds, since, show: showMessages(flags.output, io) });
  },
});

/** Returns the requested kinds. Throws `ERR_USAGE` for an unknown one. */
function kindsOf(given: readonly string[] | undefined): EventKind[] {
  const words = (given ?? []).flatMap((value) => value.split(','));
  const unknown = words.find((word) => !EVENT_KINDS.some((kind) => kind === word));
  if (unknown !== undefined) {
    throw usage(`there is no kind of events ${quote(unknown)}`, `Kinds: ${EVENT_KINDS.join(', ')}`);
  }
  return EVENT_KINDS.filter((kind) => (words.length === 0 ? kind !== 'status' : words.includes(kind)));
}
