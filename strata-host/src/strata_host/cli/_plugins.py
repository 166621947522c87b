"""x."""
import click
@click.command()
def plugins() -> None:
    """Show the installed plugins."""
