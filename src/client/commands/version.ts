import pkg from '../../../package.json' with { type: 'json' };
import { own } from '../../kit/json-value.ts';
import { printable } from '../../kit/printable.ts';
import type { Command } from '../command.ts';
import { exits } from '../command-spec.ts';
import { json, outputForm, yaml } from '../output.ts';

export const version: Command = {
  name: 'version',
  summary: 'Print the versions of this program and of the API server',
  details:
    'Without a cluster, prints its own version, and why it reached no API server, and exits with 1, or with 2 without a kubeconfig.',
  flags: [{ name: 'client', help: 'Print only the version of this program, without a call to the API server.' }],
  examples: ['version', 'version --client'],
  async run({ args, io, connect }) {
    const form = outputForm(args);
    const versions: Record<string, string> = { drawbridge: pkg.version };
    const isText = form !== 'json' && form !== 'yaml';
    // Before the call, which may wait: the user may have no cluster.
    if (isText) io.print(`drawbridge ${pkg.version}\n`);
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
    else if (versions['kubernetes'] !== undefined) io.print(`Kubernetes ${printable(versions['kubernetes'])}\n`);
    if (failure !== undefined) throw failure;
    return exits.done;
  },
};
