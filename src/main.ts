import { run } from './commands.ts';

process.exitCode = await run(process.argv.slice(2), {
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
});
// Exit explicitly, because connections that remain open keep the process alive.
process.exit();
