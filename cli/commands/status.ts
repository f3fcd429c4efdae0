import { requireService } from '../../src/client/session/find.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { noArguments } from '../arguments/arguments.ts';
import { defineCommand, type Io } from '../command.ts';
import { fold } from '../views/fold.ts';
import { statusText } from '../views/status-text.ts';
import { style } from '../views/text.ts';
import { OUTPUT_FLAG, viewFor } from '../views/view.ts';

export const status = defineCommand({
  name: 'status',
  summary: 'Show what is running, and whether it matches the settings',
  usage: '',
  description: `Exit codes: 0 converged; 2 still converging; 1 the backend failed (state ERROR), or no service is running.
With -o json, prints the response of \`GET /v2/status\`. With --watch, shows every change until Ctrl-C (exit code 130), also across a
restart of the service: a terminal is redrawn, otherwise each change is a line, and with -o json a document on one line.

  rdctl status -o json`,
  flags: {
    watch: { type: 'boolean', short: 'w', summary: 'Show every change until Ctrl-C' },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run(invocation) {
    const { args, flags, io } = invocation;
    noArguments(args, 'status');
    const { client, status: now } = await requireService(invocation);
    if (flags.watch) {
      const [{ follow, noEvents }, { showMessages }] = await Promise.all([
        import('./events/follow.ts'),
        import('../views/event-text.ts'),
      ]);
      if (!client.events) throw noEvents();
      const show = showMessages(flags.output, io);
      const redraws = flags.output !== 'json' && io.columns !== undefined;
      return follow(invocation, {
        kinds: ['status'],
        show: (message) => {
          if (redraws && message.kind === 'Status') redraw(message, io);
          else show(message);
        },
      });
    }
    viewFor(flags.output, io).status(now);
    if (now.converged) return 0;
    return now.backendState === 'ERROR' ? 1 : 2;
  },
});

/** Redraws the screen from the top left: each line is cleared to its end, and then the rest of the screen, so nothing flickers. */
function redraw(now: StatusDocument, io: Io): void {
  const text = statusText(now, style(io.color));
  const lines = (io.columns ? fold(text, io.columns) : text).split('\n');
  io.out(`\u001b[H${lines.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`);
}
