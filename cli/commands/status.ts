import { noArguments } from '../arguments/arguments.ts';
import { defineCommand } from '../command.ts';
import { requireService } from '../session/service.ts';
import { OUTPUT_FLAG, viewFor } from '../views/view.ts';

export const status = defineCommand({
  name: 'status',
  summary: 'Show what runs, and whether it is what was asked for',
  usage: '',
  description: `Exit codes: 0 the service has converged; 2 it is still working on it; 1 it cannot (state ERROR), or no service runs.
With -o json it prints the document of \`GET /v2/status\`.`,
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
