import { createClient } from '../../src/client/client.ts';
import { noArguments, usage } from '../arguments/arguments.ts';
import { platformName } from '../arguments/platform.ts';
import { givenSettings, SETTING_FLAG_TABLE, valueAdvice } from '../arguments/setting-flags.ts';
import { defineCommand } from '../command.ts';
import { writeSettings } from '../session/setting-write.ts';

export const set = defineCommand({
  name: 'set',
  summary: 'Change single settings',
  usage: '',
  description: `Sends only the settings that are named, in one request. Booleans take their value after
an equals sign: \`--kubernetes.enabled=false\`. A list is replaced as a whole: its flag is repeated,
or takes a JSON array. Entries of a map are changed one by one: \`KEY=true\`, and \`KEY=null\` takes
one away.`,
  flags: SETTING_FLAG_TABLE,
  classic: true,
  async run({ args, given, io, connect }) {
    noArguments(args, 'set', valueAdvice(args, given));
    const settings = givenSettings(given, platformName(io.platform));
    const client = createClient(await connect());
    if (settings.length === 0) throw usage('set command: no settings to change were given');
    await writeSettings(client, settings, io);
    return 0;
  },
});
