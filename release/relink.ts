import { LGPL_COMMITS, RUNTIME } from './runtime-libraries.ts';
import { RUNTIME_VERSION } from './targets.ts';

/** That libraries under the LGPL are inside, where their sources are, and how to replace them: what their license asks of those who link them. */
export const RELINK = `JavaScriptCore (the GNU Library General Public License, version 2 or later) and tinycc (the GNU Lesser General Public License,
version 2.1 or later) are used by the runtime and linked into it statically. You may change them for your own use, and reverse
engineer this program to debug such changes.

Their sources, and the source of the runtime that links them:
  https://github.com/oven-sh/WebKit, commit ${LGPL_COMMITS.webkit}
  https://github.com/oven-sh/tinycc, commit ${LGPL_COMMITS.tinycc}
  ${RUNTIME.url}, tag bun-v${RUNTIME_VERSION}, commit ${RUNTIME.revision}

To link the runtime again with a changed library, as its LICENSE.md says: clone the sources of WebKit into vendor/WebKit of the runtime's
source, check out that commit, change it, and run \`bun run build:local\`. Then run \`npm run dist\` in the source of rdctl, with that
runtime in the place of the one from the registry: in node_modules/.cache/rdctl/runtimes, where the first run has put it.`;
