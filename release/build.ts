import { bundle, consoleAssets } from './bundle.ts';

/** `npm run build`: the programs, in `dist`. */
const program = '#!/usr/bin/env node';
// Some libraries are CommonJS, and load modules of Node by require.
const withRequire = `${program}
import { createRequire as bundledRequire } from 'node:module'; const require = bundledRequire(import.meta.url);`;

await Promise.all([
  bundle({ entry: 'src/main.ts', outfile: 'dist/drawbridge.js', format: 'esm', banner: withRequire }),
  bundle({ entry: 'src/observe/health-thread.ts', outfile: 'dist/health-thread.mjs', format: 'esm' }),
  bundle({
    entry: 'src/gateway/recording/s3-sink.ts',
    outfile: 'dist/s3-sink.mjs',
    format: 'esm',
    banner: withRequire,
  }),
  bundle({ entry: 'src/notify/media/email.ts', outfile: 'dist/email.mjs', format: 'esm', banner: withRequire }),
  bundle({
    entry: 'src/client-main.ts',
    outfile: 'dist/client.cjs',
    format: 'cjs',
    banner: program,
    define: { CONSOLE_ASSETS: JSON.stringify(await consoleAssets()) },
  }),
]);
