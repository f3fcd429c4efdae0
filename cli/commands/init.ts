import { parse } from 'node:path';
import { type ProfileText, profileText } from '../../profiles/document/write.ts';
import { liveSettings } from '../../src/client/live-settings.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { noArguments } from '../arguments/arguments.ts';
import { hostOf, policiesOf } from '../arguments/environment.ts';
import { outFilePath, schemaAddress, writeOutFile } from '../arguments/files.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand } from '../command.ts';
import type { Answers } from './init/questions.ts';
import { SCHEMA_FILE, writeSchemaBeside } from './init/schema-file.ts';

export const init = defineCommand({
  name: 'init',
  summary: 'Write a profile from the current settings',
  usage: '',
  description: `Writes only settings that differ from the defaults, unless --all is given; where none does, a few to begin with.
Settings that the driver does not support are left out, so applying the profile on this computer changes nothing. If no service is running, the
profile contains the stored settings, or the defaults. Secrets are left out.
The first line points editors to the schema, if it is on this computer, for completion and validation. --with-schema writes the schema beside the profile
and points there, which works in any repository. On a terminal and without flags, asks what to write.

  rdctl init
  rdctl init --out-file rdctl.yaml --with-schema`,
  flags: {
    'out-file': { type: 'string', summary: 'Write to this file instead of standard output', placeholder: 'FILE' },
    force: { type: 'boolean', summary: 'Overwrite an existing file' },
    all: { type: 'boolean', summary: 'Include settings that have their default value' },
    schema: { type: 'string', summary: 'Path or URL of the schema, for the first line', placeholder: 'PATH' },
    'with-schema': { type: 'boolean', summary: 'Write the schema beside the profile' },
  },
  classic: false,
  async run(invocation) {
    const { flags, args, given, io } = invocation;
    noArguments(args, 'init');
    const path = outFilePath(flags['out-file'], io);
    checkSchemaFlags(flags);
    const host = hostOf(io);
    const found = await liveSettings(invocation, host, () => policiesOf(io, host));
    const profile = {
      ...found,
      defaults: defaultSettings(host),
      all: flags.all ?? false,
      leaveOut: await found.refused(),
    };
    const asks = given.length === 0 && io.interactive && io.columns !== undefined;
    const answers = asks
      ? await (await import('./init/questions.ts')).askQuestions(found.settings, io)
      : { path, name: flags['out-file'], withSchema: flags['with-schema'] ?? false };
    const text = profileText({
      ...profile,
      name: profileName(answers.path),
      ...('engine' in answers ? withAnswers(found.settings, answers) : {}),
      schema: answers.withSchema ? `./${SCHEMA_FILE}` : (flags.schema ?? schemaAddress(io, answers.path)),
    });
    if (answers.path === undefined) {
      io.out(text);
      return 0;
    }
    await writeOutFile(answers.path, text, { mode: 0o644, replace: flags.force ?? false });
    if (answers.withSchema) await writeSchemaBeside(answers.path);
    io.err(`Wrote ${answers.name}. Check it with: rdctl plan -f ${answers.name}\n`);
    return 0;
  },
});

/** Returns the name of a profile, such as `team` for `team.yaml`. */
function profileName(path: string | undefined): string {
  return (path === undefined ? '' : parse(path).name) || 'desktop';
}

function checkSchemaFlags(flags: { 'out-file'?: string; schema?: string; 'with-schema'?: boolean }): void {
  if (!flags['with-schema']) return;
  if (flags['out-file'] === undefined) throw usage('--with-schema requires --out-file');
  if (flags.schema !== undefined) throw usage('--schema and --with-schema are mutually exclusive');
}

function withAnswers(
  settings: Settings,
  { engine: name, kubernetes: enabled }: Answers,
): Pick<ProfileText, 'settings' | 'always'> {
  const { containerEngine, kubernetes } = settings;
  return {
    settings: { ...settings, containerEngine: { ...containerEngine, name }, kubernetes: { ...kubernetes, enabled } },
    always: ['containerEngine.name', 'kubernetes.enabled'],
  };
}
