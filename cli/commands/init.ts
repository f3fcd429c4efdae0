import { profileText } from '../../profiles/document/write.ts';
import { liveSettings } from '../../src/client/live-settings.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { noArguments } from '../arguments/arguments.ts';
import { hostOf, policiesOf } from '../arguments/environment.ts';
import { outFilePath, schemaAddress, writeOutFile } from '../arguments/files.ts';
import { defineCommand } from '../command.ts';

export const init = defineCommand({
  name: 'init',
  summary: 'Write a profile from the current settings',
  usage: '',
  description: `Writes only settings that differ from the defaults, unless --all is given. Settings that the driver does
not support are left out, so applying the profile on this computer changes nothing. If no service is running, the
profile contains the stored settings, or the defaults. Secrets are left out.
The first line points editors to the schema, for completion and validation.`,
  flags: {
    'out-file': { type: 'string', summary: 'Write to this file instead of standard output', placeholder: 'FILE' },
    force: { type: 'boolean', summary: 'Overwrite an existing file' },
    all: { type: 'boolean', summary: 'Include settings that have their default value' },
    schema: { type: 'string', summary: 'Path or URL of the schema, for the first line', placeholder: 'PATH' },
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    noArguments(args, 'init');
    const host = hostOf(io);
    const path = outFilePath(flags['out-file'], io);
    const found = await liveSettings(invocation, host, () => policiesOf(io, host));
    const text = profileText({
      ...found,
      defaults: defaultSettings(host),
      all: flags.all ?? false,
      leaveOut: await found.refused(),
      schema: flags.schema ?? schemaAddress(io, path),
    });
    if (path === undefined) io.out(text);
    else await writeOutFile(path, text, { mode: 0o644, replace: flags.force ?? false });
    if (path !== undefined) io.err(`Wrote ${flags['out-file']}. Check it with: rdctl plan -f ${flags['out-file']}\n`);
    return 0;
  },
});
