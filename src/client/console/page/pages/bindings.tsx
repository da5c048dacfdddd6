export function Bindings() {
  return <h1>Bindings</h1>;
}
