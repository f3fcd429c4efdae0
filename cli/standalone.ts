import { basename } from 'node:path';
import { runProcess } from './process.ts';

// The entry point of the standalone file (`release/compile.ts`), which is its own runtime: the program alone restarts it.

/**
 * Names of links to this file that act as `dist/rdctl-app.cjs`, for clients that start the application themselves: our clients by our name, others by
 * its own.
 */
const APPLICATION = /^(rdctl-app|rancher[- ]desktop)(\.exe)?$/i;

const argv = process.argv.slice(2);
// Our clients start it with the command `serve`, which stays.
const isApplication = APPLICATION.test(basename(process.argv0)) && argv[0] !== 'serve';
runProcess([process.execPath], isApplication ? ['serve', '--power=started', '--as-application', '--', ...argv] : argv);
