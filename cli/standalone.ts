import { basename } from 'node:path';
import { runProcess } from './process.ts';

// The entry point of the standalone file (`release/compile.ts`), which is its own runtime: the program alone restarts it.

/**
 * Links to this file by these names are what `dist/rdctl-app.cjs` is: for clients that start the application themselves, ours by our name for it,
 * others by its own.
 */
const APPLICATION = /^(rdctl-app|rancher[- ]desktop)(\.exe)?$/i;

const argv = process.argv.slice(2);
// One of ours starts it with a command, which stays.
const isApplication = APPLICATION.test(basename(process.argv0)) && argv[0] !== 'serve';
runProcess([process.execPath], isApplication ? ['serve', '--power=started', '--as-application', '--', ...argv] : argv);
