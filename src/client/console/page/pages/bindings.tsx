import { Listing } from '../listing.tsx';
import { Chip, type Columns, Title, two } from '../ui.tsx';

type Condition = Readonly<{ type: string; status: string; message?: string }>;

export interface Conditioned {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly status?: { readonly conditions?: readonly Condition[]; readonly providerPrettyName?: string };
}

/** The condition Ready, and the others, those with a problem first. */
export const conditionColumns: Columns<Conditioned> = {
  Ready: ({ status }) => {
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status ?? 'Unknown';
    return <Chip tone={ready === 'True' ? 'good' : ready === 'False' ? 'bad' : 'wait'}>{ready}</Chip>;
  },
  Conditions: ({ status }) => (
    <ul class="list">
      {(status?.conditions ?? [])
        .toSorted((a, b) => Number(a.status === 'True') - Number(b.status === 'True'))
        .map((one) => (
          <li key={one.type}>{two(`${one.type}: ${one.status}`, one.message)}</li>
        ))}
    </ul>
  ),
};

const columns: Columns<Conditioned> = {
  Binding: ({ metadata, status }) => two(metadata.name, status?.providerPrettyName),
  ...conditionColumns,
};

export const Bindings = () => (
  <>
    <Title>Bindings</Title>
    <Listing
      command={{ command: 'binding status' }}
      caption="Bindings of this cluster to services of others"
      columns={columns}
    />
  </>
);
