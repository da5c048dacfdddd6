import { apiServiceBindings } from '../../api/binding/names.ts';
import { clusterInventoryKind } from '../../api/inventory/cluster-inventory.ts';
import { reconcileRunKind } from '../../api/inventory/reconcile-run.ts';
import type { KubeObject } from '../../api/object.ts';
import { listIn, own } from '../../kit/json-value.ts';
import { findObject } from '../../kube/client.ts';
import { fullName } from '../access-requests.ts';
import type { Command, Context } from '../command.ts';
import { exits } from '../command-spec.ts';
import { textIn } from '../journal.ts';
import { type Column, outputForm, type Printed, Printer } from '../output.ts';
import { printPages } from '../pages.ts';
import { Problem } from '../problem.ts';
import { conditionsOf } from '../request-state.ts';
import { searchedText } from '../session.ts';

const ready = (object: KubeObject): string =>
  conditionsOf(object).find(({ type }) => type === 'Ready')?.status ?? 'Unknown';
const readyMessage = (object: KubeObject): string =>
  conditionsOf(object).find(({ type, status }) => type === 'Ready' && status !== 'True')?.message ?? '';

const bindingTable: Printed<KubeObject> = {
  columns: [
    { title: 'NAME', text: ({ metadata }) => metadata.name },
    { title: 'PROVIDER', text: (binding) => textIn(binding, 'status.providerPrettyName') },
    { title: 'READY', text: ready },
    { title: 'PROBLEM', long: true, text: bindingProblem },
  ],
  object: (binding) => binding,
  name: fullName,
};

/** The conditions that are not True, which say what to do. */
function bindingProblem(binding: KubeObject): string {
  return conditionsOf(binding)
    .filter(({ type, status }) => status === 'False' && type !== 'Ready')
    .map(({ type, message }) => `${type}: ${message}`)
    .join('; ');
}

export const bindingStatus: Command = {
  name: 'binding status',
  summary: 'Show the bindings of this cluster, and what is wrong with them',
  details: 'Exits with 1 if a binding is not ready.',
  examples: ['binding status'],
  async run({ args, io, connect }) {
    const form = outputForm(args);
    const session = { ...(await connect()), scope: {} };
    let problems = 0;
    const count = await printPages(session, [apiServiceBindings], new Printer(io, form, bindingTable), (binding) => {
      if (ready(binding) !== 'True') problems += 1;
      return true;
    });
    if (count === 0) io.printError('no bindings\n');
    return problems === 0 ? exits.done : exits.failed;
  },
};

export const inventoryStatus: Command = {
  name: 'inventory status',
  summary: 'Show the entries of the inventory, and what they wait for',
  details: 'Exits with 1 if an entry is not ready.',
  examples: ['inventory status -n fleet', 'inventory status -A'],
  async run({ args, io, connect }) {
    const form = outputForm(args);
    const session = await connect();
    const columns: readonly Column<KubeObject>[] = [
      { title: 'NAMESPACE', text: ({ metadata }) => metadata.namespace ?? '' },
      { title: 'NAME', text: ({ metadata }) => metadata.name },
      { title: 'MODE', text: (entry) => textIn(entry, 'spec.mode') },
      { title: 'READY', text: ready },
      { title: 'WAITING FOR', long: true, text: (entry) => textIn(entry, 'status.waitingFor') || readyMessage(entry) },
    ];
    const table = {
      columns: args.has('all-namespaces') ? columns : columns.slice(1),
      object: (entry: KubeObject) => entry,
      name: fullName,
    };
    let waiting = 0;
    const count = await printPages(session, [clusterInventoryKind.resource], new Printer(io, form, table), (entry) => {
      if (ready(entry) !== 'True') waiting += 1;
      return true;
    });
    if (count === 0) io.printError(`no entries found ${searchedText(session)}\n`);
    return waiting === 0 ? exits.done : exits.failed;
  },
};

/** The state of one component of an entry, and why it last ran. */
interface ComponentLine {
  readonly component: string;
  readonly state: string;
  readonly since: string;
  readonly why: string;
  readonly lastRun: string;
}

export const inventoryWhy: Command = {
  name: 'inventory why',
  summary: 'Show the components of an entry: their states, why, and why they last ran',
  args: [{ name: 'ENTRY' }],
  examples: ['inventory why prod-eu -n fleet'],
  async run(context: Context) {
    const { args, io, connect } = context;
    const form = outputForm(args);
    const session = await connect();
    const { namespace, cluster } = session;
    const name = args.positionals[0] ?? '';
    const entry = await findObject(cluster.client, clusterInventoryKind.resource, { namespace, name }, {});
    if (!entry)
      throw new Problem(
        exits.failed,
        `no entry ${name} in namespace ${namespace}; list entries with: ${io.program} inventory status -n ${namespace}`,
      );
    const { items } = await cluster.client.list(reconcileRunKind.resource, { namespace });
    const runs = new Map(
      items.filter((run) => textIn(run, 'spec.entry.name') === name).map((run) => [textIn(run, 'spec.component'), run]),
    );
    const lines = listIn(own(entry, 'status'), 'components').map((component) => lineOf(component, runs));
    const printer = new Printer(io, form, componentTable);
    printer.add(lines);
    printer.end();
    if (lines.length === 0) io.printError(`no component has run for ${name} yet\n`);
    return exits.done;
  },
};

function lineOf(component: unknown, runs: ReadonlyMap<string, KubeObject>): ComponentLine {
  const missing = listIn(component, 'missing').map((input) => textIn(input, 'path') || textIn(input, 'name'));
  const message = [textIn(component, 'reason'), textIn(component, 'message')].filter((text) => text !== '').join(': ');
  const name = textIn(component, 'name');
  return {
    component: name,
    state: textIn(component, 'state'),
    since: textIn(component, 'since'),
    why: missing.length > 0 ? `${message || 'waits'} (missing: ${missing.join(', ')})` : message,
    lastRun: textIn(runs.get(name), 'spec.why'),
  };
}

const componentTable: Printed<ComponentLine> = {
  columns: [
    { title: 'COMPONENT', text: ({ component }) => component },
    { title: 'STATE', text: ({ state }) => state },
    { title: 'SINCE', long: true, text: ({ since }) => since },
    { title: 'LAST RAN BECAUSE', text: ({ lastRun }) => lastRun },
    { title: 'WHY', long: true, text: ({ why }) => why },
  ],
  object: (line) => line,
  name: ({ component }) => component,
  blocks: true,
};
