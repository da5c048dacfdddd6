import pkg from '../../../package.json' with { type: 'json' };
import { own } from '../../kit/json-value.ts';
import { printable } from '../../kit/printable.ts';
import type { Command } from '../command.ts';
import { exits } from '../command-spec.ts';
import { json, outputForm, yaml } from '../output.ts';

export const version: Command = {
  name: 'version',
  summary: 'Print the versions of this program and of the API server',
  flags: [{ name: 'client', help: 'Print only the version of this program, without a call to the API server.' }],
  examples: ['version', 'version --client'],
  async run({ args, io, connect }) {
    const form = outputForm(args);
    const versions: Record<string, string> = { drawbridge: pkg.version };
    let failure: unknown;
    if (!args.has('client')) {
      try {
        const answer = await (await connect()).cluster.client.raw('/version');
        versions['kubernetes'] = String(own(answer, 'gitVersion') ?? 'unknown');
      } catch (error) {
        failure = error;
      }
    }
    if (form === 'json') io.print(`${json(versions)}\n`);
    else if (form === 'yaml') io.print(yaml(versions));
    else {
      io.print(`drawbridge ${pkg.version}\n`);
      if (versions['kubernetes'] !== undefined) io.print(`Kubernetes ${printable(versions['kubernetes'])}\n`);
    }
    // Who asks for the version of this program may have no cluster.
    if (failure !== undefined) throw failure;
    return exits.done;
  },
};
