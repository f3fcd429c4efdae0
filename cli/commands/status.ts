import { requireService } from '../../src/client/session/find.ts';
import { noArguments } from '../arguments/arguments.ts';
import { defineCommand } from '../command.ts';
import { OUTPUT_FLAG, viewFor } from '../views/view.ts';

export const status = defineCommand({
  name: 'status',
  summary: 'Show what is running, and whether it matches the settings',
  usage: '',
  description: `Exit codes: 0 converged; 2 still converging; 1 the backend failed (state ERROR), or no service is running.
With -o json, prints the response of \`GET /v2/status\`.`,
  flags: { output: OUTPUT_FLAG },
  classic: false,
  async run(invocation) {
    noArguments(invocation.args, 'status');
    const { status: now } = await requireService(invocation);
    viewFor(invocation.flags.output, invocation.io).status(now);
    if (now.converged) return 0;
    return now.backendState === 'ERROR' ? 1 : 2;
  },
});
