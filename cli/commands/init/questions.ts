import { existsSync } from 'node:fs';
import { confirm, isCancel, select, text } from '@clack/prompts';
import { RdError } from '../../../src/errors.ts';
import type { Settings } from '../../../src/settings/settings.gen.ts';
import { outFilePath } from '../../arguments/files.ts';
import type { Io } from '../../command.ts';
import { SCHEMA_FILE } from './schema-file.ts';

/** The answers for a new profile. */
export interface Answers {
  /** Absolute path of a file that does not exist yet, and the name that was typed. */
  path: string;
  name: string;
  engine: Settings['containerEngine']['name'];
  kubernetes: boolean;
  /** Whether the schema is written beside the profile. */
  withSchema: boolean;
}

/**
 * Asks on the terminal. `settings` are the answers offered first.
 * @throws RdError `ERR_CANCELLED` on Ctrl-C; nothing was written then.
 */
export async function askQuestions(settings: Settings, io: Io): Promise<Answers> {
  const prompt = { output: process.stderr, signal: io.signal };
  const name = requireAnswer(
    await text({
      ...prompt,
      message: 'File to write',
      initialValue: 'rdctl.yaml',
      validate: (value) => whyNot(value ?? '', io),
    }),
  );
  const engine = requireAnswer(
    await select<Answers['engine']>({
      ...prompt,
      message: 'Container engine',
      initialValue: settings.containerEngine.name,
      options: [
        { value: 'moby', label: 'moby', hint: 'the docker command' },
        { value: 'containerd', label: 'containerd', hint: 'the nerdctl command' },
      ],
    }),
  );
  const kubernetes = requireAnswer(
    await confirm({ ...prompt, message: 'Run Kubernetes?', initialValue: settings.kubernetes.enabled }),
  );
  const withSchema = requireAnswer(
    await confirm({ ...prompt, message: `Write ${SCHEMA_FILE} beside it, for editors?`, initialValue: true }),
  );
  return { path: outFilePath(name, io), name, engine, kubernetes, withSchema };
}

function whyNot(name: string, io: Io): string | undefined {
  try {
    return existsSync(outFilePath(name, io)) ? 'It exists; choose another name.' : undefined;
  } catch (error) {
    if (error instanceof RdError) return error.message;
    throw error;
  }
}

function requireAnswer<T>(answer: T): Exclude<T, symbol> {
  if (!isCancel(answer)) return answer as Exclude<T, symbol>;
  throw new RdError('ERR_CANCELLED', 'Nothing was written.');
}
