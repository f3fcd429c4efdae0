#!/usr/bin/env node

// The entry point of the package: a script that Node runs. Everything else is loaded with its compiled code (`code-cache.ts`).

import('./process.ts').then(({ runProcess }) => {
  runProcess([process.execPath, process.argv[1] ?? ''], process.argv.slice(2));
});
