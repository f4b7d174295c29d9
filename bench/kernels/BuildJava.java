// Compiles class files with TeaVM: arguments are a folder of classes, the folder for classes.wasm, and the main class.
import java.io.File;
import java.util.Arrays;
import java.util.stream.Stream;
import org.teavm.tooling.TeaVMTargetType;
import org.teavm.tooling.TeaVMTool;
import org.teavm.vm.TeaVMOptimizationLevel;

public class BuildJava {
    public static void main(String[] arguments) throws Exception {
        var library = System.getProperty("java.class.path").split(File.pathSeparator);
        var tool = new TeaVMTool();
        tool.setTargetType(TeaVMTargetType.WEBASSEMBLY_GC);
        tool.setClassPath(Stream.concat(Stream.of(arguments[0]), Arrays.stream(library)).map(File::new).toList());
        tool.setTargetDirectory(new File(arguments[1]));
        tool.setTargetFileName("classes.wasm");
        tool.setMainClass(arguments[2]);
        tool.setOptimizationLevel(TeaVMOptimizationLevel.FULL);
        tool.setStrict(true);
        tool.setObfuscated(true);
        tool.generate();
        var problems = tool.getProblemProvider().getSevereProblems();
        for (var problem : problems) {
            System.err.println(problem.getText() + " " + Arrays.toString(problem.getParams()) + " " + problem.getLocation());
        }
        if (!problems.isEmpty()) System.exit(1);
    }
}
