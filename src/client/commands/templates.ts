import { showName } from '../../access/policy/names.ts';
import { reasonText } from '../../access/policy/reason.ts';
import { limitWarnings } from '../../access/policy/template-policy.ts';
import type { KubeObject } from '../../api/object.ts';
import { fullName, templateResource, typeNames, typeOf } from '../access-requests.ts';
import { approversText, permitsExec } from '../approver-text.ts';
import { searchedText } from '../cluster-connection.ts';
import type { Command } from '../command.ts';
import { exits } from '../command-spec.ts';
import { optionsOf } from '../option-text.ts';
import { outputForm, type Presentation, Printer } from '../output.ts';
import { printPages } from '../pages.ts';
import { ignoredFieldsIn, readyOf, statusOf, templateSpecOf } from '../request-state.ts';

export const templates: Command = {
  name: 'templates',
  summary: 'List the templates, and who can request access through them',
  details:
    'Lists the templates that you can read. GROUPS are those that a template allows. TYPE says no shell if access permits no exec. DURATION is the default, the maximum, and the total with extensions. READY is false if no access can open; -o wide shows why, or what the author should correct, and which options the template sets, such as extension or emergency. explain TEMPLATE describes them, and says whether you can request access. To write a template, start from templates new.',
  examples: ['templates', 'templates -A -o wide'],
  async run({ args, io, connect }) {
    const form = outputForm(args);
    const connection = await connect();
    const printer = new Printer(io, form, templateTable(args.has('all-namespaces')));
    const resources = typeNames.map(templateResource);
    const count = await printPages(connection, resources, printer, () => true);
    if (count === 0) io.printError(`no templates found ${await searchedText(connection, resources)}\n`);
    return exits.done;
  },
};

function templateTable(namespaces: boolean): Presentation<KubeObject> {
  const config = (template: KubeObject) => templateSpecOf(template).accessConfig;
  const columns = [
    { title: 'NAMESPACE', text: ({ metadata }: KubeObject) => metadata.namespace ?? '' },
    { title: 'NAME', long: true, text: ({ metadata }: KubeObject) => metadata.name },
    {
      title: 'TYPE',
      text: (template: KubeObject) => `${typeOf(template)}${permitsExec(template) ? '' : ', no shell'}`,
    },
    { title: 'READY', text: (template: KubeObject) => String(statusOf(template).ready ?? false) },
    {
      title: 'DURATION',
      text: (template: KubeObject) => {
        const { defaultDuration = '1h', maxDuration = '24h', extension } = config(template) ?? {};
        return `${defaultDuration}, max ${maxDuration}${extension ? `, ${extension.total} with extensions` : ''}`;
      },
    },
    {
      title: 'GROUPS',
      text: (template: KubeObject) => config(template)?.allowedGroups?.map(showName).join(', ') ?? '',
    },
    { title: 'APPROVED BY', long: true, text: (template: KubeObject) => approversText(template) || 'none needed' },
    { title: 'REASON TO GIVE', wide: true, text: reasonToGive },
    {
      title: 'OPTIONS',
      wide: true,
      long: true,
      text: (template: KubeObject) =>
        optionsOf(template)
          .map(([field]) => field)
          .join(', '),
    },
    { title: 'PROBLEM', wide: true, long: true, text: problemIn },
  ];
  return { columns: namespaces ? columns : columns.slice(1), object: (template) => template, name: fullName };
}

/** Why a template is not ready, or what its author should correct. */
function problemIn(template: KubeObject): string {
  if (!statusOf(template).ready) return readyOf(template)?.message ?? '';
  const problems = [ignoredFieldsIn(template), ...limitWarnings(templateSpecOf(template))];
  return problems.filter((text) => text !== '').join('. ');
}

function reasonToGive(template: KubeObject): string {
  const reason = templateSpecOf(template).accessConfig?.reason;
  return reason ? reasonText(reason) : 'optional';
}
