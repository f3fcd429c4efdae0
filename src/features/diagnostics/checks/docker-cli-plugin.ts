import { constants } from 'node:fs';
import { access, lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../../os/io-error.ts';
import { findProgram, programPath } from '../../../os/program.ts';
import { type Check, failed, passed } from '../check.ts';
import type { CheckContext } from '../context.ts';

/** Where the docker command looks beside the user's directory. */
const SYSTEM_DIRECTORIES = [
  '/usr/local/lib/docker/cli-plugins',
  '/usr/local/libexec/docker/cli-plugins',
  '/usr/lib/docker/cli-plugins',
  '/usr/libexec/docker/cli-plugins',
];
/** Debian package of docker's own archive. */
const PACKAGES: Readonly<Record<string, string>> = {
  'docker-buildx': 'docker-buildx-plugin',
  'docker-compose': 'docker-compose-plugin',
};

/**
 * The docker command finds this plugin. The compatible application links its own copy into `~/.docker/cli-plugins`; here any copy suffices,
 * because none is shipped.
 */
export function dockerCliPlugin(name: string): Check {
  return {
    id: `RD_BIN_DOCKER_CLI_SYMLINK_${name.toUpperCase()}`,
    category: 'Utilities',
    applies: ({ platform }) => platform !== 'win32',
    async run(context) {
      if ((await findProgram('docker', programPath(context.env.PATH))) === undefined) {
        return [passed('The `docker` command is not installed, so it needs no plugins.')];
      }
      const own = join(configDirectory(context), 'cli-plugins', name);
      const problem = await problemOf(own);
      if (problem !== undefined && problem !== 'is missing') {
        return [failed(`\`${own}\` ${problem}.`, [{ description: `Remove it: \`rm ${quoted(own)}\`` }])];
      }
      const others = SYSTEM_DIRECTORIES.map((directory) => join(directory, name));
      for (const file of problem === undefined ? [own] : others) {
        if ((await problemOf(file)) === undefined) return [passed(`The \`docker\` command finds \`${file}\`.`)];
      }
      return [
        failed(
          `The \`docker\` command has no plugin \`${name}\`: \`${own}\` is missing, and there is none of the system.`,
          [
            {
              description: `Install it: \`apt-get install ${PACKAGES[name] ?? name}\` from docker's package archive, or put the program there.`,
            },
          ],
        ),
      ];
    },
  };
}

/** Configuration directory of the docker command. */
export function configDirectory({ env, home }: CheckContext): string {
  return env.DOCKER_CONFIG || join(home, '.docker');
}

/** Why a file is not executable, as the rest of a sentence; undefined when it is. */
async function problemOf(file: string): Promise<string | undefined> {
  try {
    await lstat(file);
  } catch (error) {
    return systemCode(error) === 'ENOENT' ? 'is missing' : `cannot be looked at (${systemCode(error)})`;
  }
  try {
    await access(file, constants.X_OK);
    return undefined;
  } catch (error) {
    switch (systemCode(error)) {
      case 'ENOENT':
        return 'is a link to a file that is not there';
      case 'ELOOP':
        return 'is a link that leads in a circle';
      default:
        return 'is not executable';
    }
  }
}

/** Single-quoted for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
