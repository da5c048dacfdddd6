import { run } from './commands.ts';

process.exitCode = await run(process.argv.slice(2), {
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
});
// Sockets that others keep open must not keep a finished process alive.
process.exit();
