// Links Scala.js's intermediate files to a module: arguments are a class path and the folder for main.js and main.wasm.
import java.io.File
import java.nio.file.Paths
import org.scalajs.linker.{PathIRContainer, PathOutputDirectory, StandardImpl}
import org.scalajs.linker.interface._
import org.scalajs.logging.{Level, ScalaConsoleLogger}
import scala.concurrent.{Await, ExecutionContext}
import scala.concurrent.duration.Duration

object LinkScala {
  def main(arguments: Array[String]): Unit = {
    implicit val context: ExecutionContext = ExecutionContext.global
    val checks = Semantics.Defaults.withAsInstanceOfs(CheckedBehavior.Compliant)
      .withArrayIndexOutOfBounds(CheckedBehavior.Compliant)
      .withNullPointers(CheckedBehavior.Compliant)
    val config = StandardConfig().withModuleKind(ModuleKind.ESModule).withExperimentalUseWebAssembly(true)
      .withSemantics(checks).withSourceMap(false)
    val cache = StandardImpl.irFileCache().newCache
    val work = for {
      (containers, _) <- PathIRContainer.fromClasspath(arguments(0).split(File.pathSeparator).toSeq.map(Paths.get(_)))
      files <- cache.cached(containers)
      _ <- StandardImpl.linker(config)
        .link(files, Nil, PathOutputDirectory(Paths.get(arguments(1))), new ScalaConsoleLogger(Level.Error))
    } yield ()
    Await.result(work, Duration.Inf)
  }
}
