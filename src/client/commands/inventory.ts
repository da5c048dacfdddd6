import { apiServiceBindings } from '../../api/binding/names.ts';
import { clusterInventoryKind } from '../../api/inventory/cluster-inventory.ts';
import { componentReconcilerKind } from '../../api/inventory/component-reconciler.ts';
import { describeReason } from '../../api/inventory/describe-state.ts';
import type { MissingInput } from '../../api/inventory/fields.ts';
import { kubeconfigOutput, outputsOf } from '../../api/inventory/names.ts';
import { reconcileRunKind } from '../../api/inventory/reconcile-run.ts';
import type { KubeObject } from '../../api/object.ts';
import { listIn, own } from '../../kit/json-value.ts';
import { isForbidden } from '../../kube/errors.ts';
import { fullName } from '../access-requests.ts';
import { type ClusterConnection, searchedText } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits } from '../command-spec.ts';
import { textIn } from '../journal.ts';
import { type Column, outputForm, type Presentation, Printer } from '../output.ts';
import { printPages } from '../pages.ts';
import { findServed, isNotServed, Problem, plainMessage } from '../problem.ts';
import { conditionsOf, readyOf } from '../request-state.ts';

const ready = (object: KubeObject): string => readyOf(object)?.status ?? 'Unknown';
/** The message of its condition Ready, or `status.waitingFor`: that message cut to a column. */
const waitsFor = (entry: KubeObject, isWhole: boolean): string =>
  (!isWhole && textIn(entry, 'status.waitingFor')) || (readyOf(entry)?.message ?? '');
const isSuspended = (entry: KubeObject): boolean => own(own(entry, 'spec'), 'suspend') === true;

const bindingTable: Presentation<KubeObject> = {
  columns: [
    { title: 'NAME', text: ({ metadata }) => metadata.name },
    { title: 'PROVIDER', text: (binding) => textIn(binding, 'status.providerPrettyName') },
    { title: 'READY', text: ready },
    { title: 'PROBLEM', long: true, text: bindingProblem },
  ],
  object: (binding) => binding,
  name: fullName,
};

/** Conditions that are False, except Ready; the messages contain remedies. */
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
    const connection = { ...(await connect()), scope: {} };
    let problems = 0;
    const count = await printPages(connection, [apiServiceBindings], new Printer(io, form, bindingTable), (binding) => {
      if (ready(binding) !== 'True') problems += 1;
      return true;
    });
    if (count === 0) io.printError('no bindings found\n');
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
    const connection = await connect();
    // Only a terminal has a width to which the text must be cut.
    const isWhole = form === 'wide' || io.columns === undefined;
    const columns: readonly Column<KubeObject>[] = [
      { title: 'NAMESPACE', text: ({ metadata }) => metadata.namespace ?? '' },
      { title: 'NAME', text: ({ metadata }) => metadata.name },
      { title: 'MODE', text: (entry) => textIn(entry, 'spec.mode') },
      { title: 'READY', text: ready },
      { title: 'SINCE', long: true, text: (entry) => readyOf(entry)?.lastTransitionTime ?? '' },
      { title: 'SUSPENDED', wide: true, text: (entry) => String(isSuspended(entry)) },
      { title: 'CREATED', wide: true, text: ({ metadata }) => metadata.creationTimestamp ?? '' },
      { title: 'WAITING FOR', long: true, text: (entry) => waitsFor(entry, isWhole) },
    ];
    const table = {
      columns: args.has('all-namespaces') ? columns : columns.slice(1),
      object: (entry: KubeObject) => entry,
      name: fullName,
    };
    let waiting = 0;
    const count = await printPages(
      connection,
      [clusterInventoryKind.resource],
      new Printer(io, form, table),
      (entry) => {
        if (ready(entry) !== 'True') waiting += 1;
        return true;
      },
    );
    if (count === 0)
      io.printError(`no entries found ${await searchedText(connection, [clusterInventoryKind.resource])}\n`);
    return waiting === 0 ? exits.done : exits.failed;
  },
};

/** One component of an entry and its runs. A text is empty if unknown or not applicable. */
interface ComponentLine {
  readonly component: string;
  readonly state: string;
  readonly since: string;
  readonly why: string;
  readonly lastRun: string;
  /** Since when a run is in progress, when the next one starts, or why none does. */
  readonly next: string;
  /** `spec.attempt` of the ReconcileRun; 0 if there is none. */
  readonly attempt: number;
  readonly suspended: boolean;
  /** JSON pointers of its registration, for all forms but tables; empty if you may not read it. */
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

export const inventoryWhy: Command = {
  name: 'inventory why',
  summary: 'Show the components of an entry: their states, why, why they last ran, and when they run next',
  args: [{ name: 'ENTRY' }],
  examples: ['inventory why prod-eu -n fleet'],
  async run(context: Context) {
    const { args, io, connect } = context;
    const form = outputForm(args);
    const connection = await connect();
    const { namespace, cluster } = connection;
    const name = args.positionals[0] ?? '';
    const entry = await findServed(cluster.client, clusterInventoryKind.resource, { namespace, name });
    if (!entry)
      throw new Problem(
        exits.failed,
        `no entry ${name} in namespace ${namespace}; list entries with: ${io.program} inventory status ${connection.where}`,
      );
    const { items } = await cluster.client.list(reconcileRunKind.resource, { namespace });
    const runs = new Map(
      items.filter((run) => textIn(run, 'spec.entry.name') === name).map((run) => [textIn(run, 'spec.component'), run]),
    );
    const registrations = form === 'table' ? [] : await registrationsFor(connection);
    const lines = listIn(own(entry, 'status'), 'components').map((component) => ({
      ...lineOf(component, runs, isSuspended(entry)),
      ...fieldsIn(registrations, textIn(component, 'name')),
    }));
    const printer = new Printer(io, form, componentTable);
    printer.add(lines);
    printer.end();
    if (lines.length === 0)
      io.printError(
        `the status of ${name} has no components: ${waitsFor(entry, true) || 'the server has not written it yet; check that the inventory feature runs'}\n`,
      );
    return exits.done;
  },
};

/** Empty, with a note, if the user may not read them. */
async function registrationsFor({ cluster, note }: ClusterConnection): Promise<readonly KubeObject[]> {
  try {
    return (await cluster.client.list(componentReconcilerKind.resource)).items;
  } catch (error) {
    if (!isForbidden(error) && !isNotServed(error)) throw error;
    note(`what the components read and write is unknown: ${plainMessage(error)}`);
    return [];
  }
}

function fieldsIn(registrations: readonly KubeObject[], component: string): Pick<ComponentLine, 'reads' | 'writes'> {
  const { spec } = registrations.find(({ metadata }) => metadata.name === component) ?? {};
  if (spec === undefined) return { reads: [], writes: [] };
  const kubeconfig = own(spec, 'kubeconfig') === 'read' ? [kubeconfigOutput] : [];
  const writes = listIn(spec, 'writes').map(String);
  return {
    reads: [...listIn(spec, 'reads').map(String), ...kubeconfig],
    writes: writes.length === 0 ? [outputsOf(component)] : writes,
  };
}

function lineOf(component: unknown, runs: ReadonlyMap<string, KubeObject>, suspended: boolean) {
  const name = textIn(component, 'name');
  const state = textIn(component, 'state');
  const run = runs.get(name);
  return {
    component: name,
    state,
    since: textIn(component, 'since'),
    why: describeReason({
      state,
      reason: textIn(component, 'reason'),
      message: textIn(component, 'message'),
      missing: listIn(component, 'missing').map(missingIn),
    }),
    lastRun: textIn(run, 'spec.why'),
    next: run
      ? nextOf(run)
      : suspended && state !== 'NotApplicable'
        ? 'none: suspended by spec.suspend of the entry'
        : '',
    attempt: Number(textIn(run, 'spec.attempt')),
    suspended,
  };
}

function missingIn(input: unknown): MissingInput {
  const want = textIn(input, 'want');
  const known = (['absent', 'equals', 'noReaders'] as const).find((one) => one === want);
  return { path: textIn(input, 'path'), want: known ?? 'present', value: own(input, 'value') };
}

function nextOf(run: KubeObject): string {
  if (textIn(run, 'spec.phase') === 'Idle') return textIn(run, 'spec.next');
  const time = (field: string): string => textIn(run, field).replace(/\.\d+/, '');
  const found = `running since ${time('spec.startedAt')}`;
  // The component answered 202, so it reports the outcome later.
  const isAsynchronous = own(own(run, 'spec'), 'asynchronous') === true;
  if (textIn(run, 'spec.phase') !== 'Running' || !isAsynchronous) return found;
  return `${found}; without a report, it ends at about ${time('spec.leaseUntil')}`;
}

const componentTable: Presentation<ComponentLine> = {
  columns: [
    { title: 'COMPONENT', text: ({ component }) => component },
    { title: 'STATE', text: ({ state }) => state },
    { title: 'SINCE', long: true, text: ({ since }) => since },
    { title: 'NEXT RUN', long: true, text: ({ next }) => next },
    { title: 'ATTEMPT', wide: true, text: ({ attempt }) => String(attempt) },
    { title: 'READS', wide: true, text: ({ reads }) => reads.join(', ') },
    { title: 'WRITES', wide: true, text: ({ writes }) => writes.join(', ') },
    { title: 'LAST RAN BECAUSE', text: ({ lastRun }) => lastRun },
    { title: 'WHY', long: true, text: ({ why }) => why },
  ],
  object: (line) => line,
  name: ({ component }) => component,
  blocks: true,
};
