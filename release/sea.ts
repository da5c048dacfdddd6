import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { archiveName, folder, pack, root } from './archive.ts';
import { bundle } from './bundle.ts';

/** `make sea`: the client and Node in one executable, built for the platform that it is built on, and its archive. */
const inFolder = (name: string): string => join(folder, name);

// Libraries try optional modules. Node would print a warning for each that is not built in.
const builtinsOnly =
  "{const load=require,{isBuiltin}=load('node:module');require=(id)=>{if(!isBuiltin(id))throw new Error('cannot load '+id);return load(id)}}";

mkdirSync(folder, { recursive: true });
// CommonJS, because Node 24 runs no ES module from an executable.
await bundle({ entry: 'src/client-main.ts', outfile: inFolder('client.cjs'), format: 'cjs', banner: builtinsOnly });
writeFileSync(
  inFolder('sea.json'),
  JSON.stringify({
    // Relative, because the blob contains this path.
    main: 'client.cjs',
    output: 'client.blob',
    disableExperimentalSEAWarning: true,
  }),
);
execFileSync(process.execPath, ['--experimental-sea-config', 'sea.json'], { cwd: folder, stdio: 'pipe' });
copyFileSync(process.execPath, inFolder('drawbridge'));
chmodSync(inFolder('drawbridge'), 0o755);
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
const postject = join(root, 'node_modules/postject/dist/cli.js');
const inject = [inFolder('drawbridge'), 'NODE_SEA_BLOB', inFolder('client.blob'), '--sentinel-fuse', fuse];
execFileSync(process.execPath, [postject, ...inject], { stdio: 'pipe' });
copyFileSync(join(root, 'LICENSE'), inFolder('LICENSE'));
pack(inFolder(archiveName), folder, 'drawbridge', 'LICENSE');
for (const name of ['client.cjs', 'client.blob', 'sea.json']) rmSync(inFolder(name));
