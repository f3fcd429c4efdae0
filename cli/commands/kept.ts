import { runningService } from '../../src/client/session/find.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { readKept } from '../../src/state/kept-file.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand } from '../command.ts';
import { keptNamesText, keptText } from '../views/kept-text.ts';
import { jsonText, style } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';

export const kept = defineCommand({
  name: 'kept',
  summary: 'Show the kept profiles, and what differs from them',
  usage: '',
  description: `Lists the profiles that the service keeps (\`rdctl apply --keep\`), and each field that differs from its profile: who set it,
since when, and what the service does about it. Without a running service, it lists the profiles alone.
Exit codes: 0 success, also with differences; 1 the running application keeps no profiles.

  rdctl kept`,
  flags: { output: OUTPUT_FLAG },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    if (args.length > 0) throw usage('kept takes no arguments');
    const service = await runningService(invocation);
    if (service && !service.client.releaseKept) throw usage(`${service.status.product} keeps no profiles`);
    if (service) {
      const list = service.status.kept ?? [];
      if (flags.output === 'json') io.out(jsonText({ kind: 'Kept', formatVersion: 1, kept: list }));
      else io.say(keptText(list, { now: Date.now(), paint: style(io.color) }));
      return 0;
    }
    const stored = await readKept(homeOf(io).keptFile);
    const list = stored.map(({ profile: { name, files, appliedAt, generation, watch } }) => ({
      ...{ name, files: files.map(({ path }) => path), appliedAt, generation, watch },
      state: 'not watched',
    }));
    if (flags.output === 'json') io.out(jsonText({ kind: 'Kept', formatVersion: 1, kept: list }));
    else io.say(keptNamesText(list));
    return 0;
  },
});
