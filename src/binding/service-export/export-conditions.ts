import { bindConditions } from '../../api/binding/names.ts';
import { type BindFinding, fails, findCondition, holds } from '../conditions.ts';
import type { BindingView, ExportView } from '../stores/views.ts';

const { connected, consumerInSync, schemaInSync } = bindConditions;

/** What a provider is told of an export; `binding` is undefined when nobody binds it here, or another provider's is bound. */
export function exportFindings(
  { name, unreadable }: Pick<ExportView, 'name' | 'unreadable'>,
  binding: BindingView | undefined,
  refused: readonly string[] = [],
): BindFinding[] {
  if (!binding) {
    return [
      fails(connected, 'Info', 'APIServiceBindingNotFound', `the consumer has no APIServiceBinding ${name} for it`),
      fails(consumerInSync, 'Info', 'NA', `the consumer has no APIServiceBinding ${name} for it`),
    ];
  }
  if (unreadable !== undefined) {
    const message = `APIServiceExport ${name} cannot be read by the consumer: ${unreadable}`;
    return [fails(connected, 'Error', 'APIServiceExportInvalid', message), inSyncFinding(binding)];
  }
  return [connectedFinding(refused), inSyncFinding(binding)];
}

function connectedFinding(refused: readonly string[]): BindFinding {
  return refused.length > 0
    ? fails(connected, 'Warning', 'BoundSchemasNotValid', refused.join('. '))
    : holds(connected);
}

/** What the binding says of its schemas. */
function inSyncFinding({ name, conditions }: BindingView): BindFinding {
  const said = findCondition(conditions, schemaInSync);
  if (!said) return fails(consumerInSync, 'Info', 'Unknown', `APIServiceBinding ${name} does not say yet`);
  const { lastTransitionTime: _, ...finding } = said;
  return { ...finding, type: consumerInSync };
}
