import { requireService } from '../../src/client/session/find.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand } from '../command.ts';
import { plainText } from '../views/text.ts';

export const release = defineCommand({
  name: 'release',
  summary: 'Stop keeping a profile',
  usage: '[NAME]',
  description: `Ends what \`rdctl apply --keep\` began: the settings stay as they are, and are no longer compared with the profile. NAME is its
metadata.name; without one, the only kept profile is released.
Exit codes: 0 success; 1 no such profile is kept, or no service is running.

  rdctl release team`,
  flags: {},
  classic: false,
  async run(invocation) {
    const { args, io } = invocation;
    if (args.length > 1) throw usage('release takes one name');
    const { client, status } = await requireService(invocation);
    if (!client.releaseKept) throw usage(`${status.product} keeps no profiles`);
    const kept = (status.kept ?? []).map(({ name }) => name);
    const [only] = kept;
    const name = args[0] ?? (kept.length === 1 ? only : undefined);
    if (name === undefined) {
      const which = kept.length === 0 ? 'no profile is kept' : `${kept.length} profiles are kept: ${kept.join(', ')}`;
      throw usage(which, kept.length === 0 ? 'Keep one with `rdctl apply -f FILE --keep`.' : 'Name one of them.');
    }
    await client.releaseKept(name);
    io.say(`Released ${plainText(name)}. The settings stay as they are.\n`);
    return 0;
  },
});
